#include "cli/commands.hpp"
#include "cli/model_flags.hpp"
#include "cli/signals.hpp"

namespace tessera::cli {
namespace {

struct RunOptions {
  ModelFlags model;
  TextSource prompt;
  GenerateOptions generate;
  uint64_t seed = 0;
  CLI::Option* seed_option = nullptr;
  bool json = false, quiet = false, raw = true;
};

double per_second(int64_t tokens, double ms) {
  return ms > 0 ? static_cast<double>(tokens) * 1e3 / ms : 0;
}

void print_result(const std::string& prompt, const Generation& result, const ModelInfo& info,
                  double load_ms) {
  const Timings& timings = result.timings;
  print_json({{"prompt", prompt},
              {"prompt_ids", result.prompt_ids},
              {"text", result.text},
              {"ids", result.ids},
              {"finish_reason", name(result.finish_reason)},
              {"device", info.device},
              {"seed", result.seed},
              {"timings",
               {{"load_ms", load_ms},
                {"prefill_tokens", timings.prefill_tokens},
                {"prefill_ms", timings.prefill_ms},
                {"prefill_tps", per_second(timings.prefill_tokens, timings.prefill_ms)},
                {"decode_tokens", timings.decode_tokens},
                {"decode_ms", timings.decode_ms},
                {"decode_tps", per_second(timings.decode_tokens, timings.decode_ms)}}}});
}

void note_summary(const Generation& result, const GenerateOptions& options, const ModelInfo& info,
                  double load_ms) {
  const std::string sampling =
      options.temperature == 0
          ? "greedy"
          : fmt::format("temperature {}, top-k {}, top-p {}, min-p {}, seed {}",
                        options.temperature, options.top_k, options.top_p, options.min_p,
                        result.seed);
  const Timings& timings = result.timings;
  note("[{}; {}]", settings_line(info), sampling);
  note("[load {:.0f} ms; prompt {} tokens, {:.1f} tok/s; generated {} tokens, {:.1f} tok/s; {}]",
       load_ms, timings.prefill_tokens, per_second(timings.prefill_tokens, timings.prefill_ms),
       result.ids.size(), per_second(timings.decode_tokens, timings.decode_ms),
       name(result.finish_reason));
}

int run(const RunOptions& flags, Action& action) {
  const std::string prompt = flags.prompt.read();
  const InterruptScope interrupt;
  const auto [model, load_ms] = flags.model.load_model(action);
  GenerateOptions options = flags.generate;
  options.cancel = &interrupt.flag();
  if (flags.seed_option->count() > 0) options.seed = flags.seed;
  TextCallback stream;
  if (!flags.json) {
    stream = [](std::string_view text) {
      write_out(text);
      flush_out();
      return true;
    };
  }
  Session session(model);
  const Generation result = session.generate(prompt, options, stream);
  if (flags.json) {
    print_result(prompt, result, model.info(), load_ms);
  } else if (!result.text.ends_with('\n')) {
    write_out("\n");
  }
  flush_out();
  if (!flags.quiet) note_summary(result, options, model.info(), load_ms);
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

void add_sampling_flags(CLI::App& command, RunOptions& flags) {
  GenerateOptions& generate = flags.generate;
  const auto add = [&](const std::string& names, auto& value, const std::string& description) {
    return command.add_option(names, value, description)->group("Sampling")->capture_default_str();
  };
  add("-n,--max-tokens", generate.max_tokens, "Most tokens to generate")
      ->check(integer_between(0, INT32_MAX));
  add("--temperature", generate.temperature, "0: always the likeliest token")
      ->check(number_between(0, 100));
  add("--top-k", generate.top_k, "Sample among the k likeliest tokens; 0: off")
      ->check(integer_between(0, INT32_MAX));
  add("--top-p", generate.top_p, "Sample among the likeliest tokens of this total; 1: off")
      ->check(number_above(0, 1));
  add("--min-p", generate.min_p, "Drop tokens less likely than this share of the best; 0: off")
      ->check(number_between(0, 1));
  flags.seed_option =
      command
          .add_option("--seed", flags.seed, "Seed of the sampler; without it a new one each run")
          ->group("Sampling")
          ->check(unsigned_64());
  command.add_option("--stop", generate.stop, "End before this text appears; repeatable")
      ->group("Sampling")
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](std::string& text) { return text.empty() ? "expected text, got none" : ""; }, ""));
  command.add_flag("--ignore-eos", generate.ignore_eos, "Go on past the end-of-text token")
      ->group("Sampling");
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RunOptions>();
  CLI::App* command =
      add_command(app, action, "run", "Continue a prompt, streaming the text to standard output",
                  "  tessera run model.gguf \"The capital of France is\"\n"
                  "  tessera run default -n 64 --temperature 0 < prompt.txt\n"
                  "  tessera run model.gguf -f prompt.txt --stop \"\\n\" --json | jq .text",
                  [flags, &action] { return run(*flags, action); });
  flags->model.add_run_flags(*command);
  flags->prompt.text_option =
      command
          ->add_option("PROMPT", flags->prompt.text, "Text to continue; without it, standard input")
          ->type_name("");
  flags->prompt.file_option =
      command->add_option("-f,--file", flags->prompt.file, "Read the prompt from this file");
  command->add_flag(
      "--raw", flags->raw,
      "Take the prompt as it is, with the text of special tokens parsed (the default)");
  add_sampling_flags(*command, *flags);
  command->add_flag("--json", flags->json, "Print one JSON object instead of the text");
  command->add_flag("-q,--quiet", flags->quiet, "No settings and speeds on standard error");
}

}  // namespace tessera::cli
