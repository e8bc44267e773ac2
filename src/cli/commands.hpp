#pragma once

#include "cli/common.hpp"

namespace tessera::cli {

// Each adds its commands to the program, in the order of the help text.
void add_run(CLI::App& app, Action& action);
void add_text(CLI::App& app, Action& action);   // tokenize, detokenize
void add_score(CLI::App& app, Action& action);  // logits, perplexity
void add_info(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);              // bench ops, bench model
void add_bench_exercises(CLI::App& bench, Action& action);  // matvec, prefill, gemm-ladder
void add_bench_fixed(CLI::App& parent, Action& action);     // bench fixed-kernels
void add_roofline(CLI::App& app, Action& action);
void add_diff_trace(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

/// One line a device on stdout: `tessera --list-devices`.
int list_devices();

/// The reference of the command line as Markdown, from the definitions of its flags.
std::string markdown_help(const CLI::App& app);

}  // namespace tessera::cli
