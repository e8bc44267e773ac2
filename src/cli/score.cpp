#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model_flags.hpp"

namespace tessera::cli {
namespace {

struct ScoreOptions {
  ModelFlags model;
  TextSource text;
  CLI::Option* ids_option = nullptr;
  std::vector<uint32_t> ids;
  int64_t top = 10, stride = 0;
  bool parse_special = false, all_positions = false, json = false;
};

/// The `n` largest logits, best first, lower id first among equals.
std::vector<uint32_t> top_ids(std::span<const float> logits, int64_t n) {
  std::vector<uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0U);
  const auto end = ids.begin() + std::min(n, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  ids.erase(end, ids.end());
  return ids;
}

void print_position(const Model& model, const ScoreOptions& flags, std::span<const uint32_t> ids,
                    size_t position, std::span<const float> logits) {
  const std::vector<uint32_t> best = top_ids(logits, flags.top);
  if (flags.json) {
    Json top = Json::array();
    for (const uint32_t id : best) {
      top.push_back({{"id", id}, {"logit", logits[id]}, {"piece", model.piece(id)}});
    }
    if (flags.all_positions) {
      print_json({{"position", position}, {"id", ids[position]}, {"top", top}});
    } else {
      print_json({{"ids", std::vector(ids.begin(), ids.end())}, {"top", top}});
    }
    return;
  }
  out("after {} tokens, the last one {} {}\n", position + 1, ids[position],
      escaped(model.piece(ids[position])));
  for (const uint32_t id : best) {
    out("{:>10.4f} {:>7} {}\n", logits[id], id, escaped(model.piece(id)));
  }
}

int logits(const ScoreOptions& flags, Action& action) {
  const bool given_ids = flags.ids_option->count() > 0;
  if (given_ids && flags.text.text_option->count() > 0) {
    fail(ErrorKind::kInvalidArgument, "--ids", "give either TEXT or --ids, not both");
  }
  if (given_ids && flags.parse_special) {
    fail(ErrorKind::kInvalidArgument, "--special",
         "says how TEXT is split: it has no meaning "
         "with --ids");
  }
  const std::string text = given_ids ? std::string() : flags.text.read();
  const Model model = flags.model.load_model(action).model;
  const std::vector<uint32_t> ids =
      given_ids ? flags.ids
                : model.tokenize(text, {.add_bos = {}, .parse_special = flags.parse_special});
  if (ids.empty())
    fail(ErrorKind::kInvalidArgument, "TEXT", "expected at least one token, got none");
  Session session(model);
  const std::vector<float> values = session.logits(ids, flags.all_positions);
  const auto vocab_size = static_cast<size_t>(model.info().vocab_size);
  const size_t n_rows = values.size() / vocab_size;
  for (size_t row = 0; row < n_rows; ++row) {
    print_position(model, flags, ids, ids.size() - n_rows + row,
                   std::span(values).subspan(row * vocab_size, vocab_size));
  }
  flush_out();
  return kExitOk;
}

/// Sum of negative log-likelihoods and the number of predictions in it.
struct Likelihood {
  double nll = 0;
  size_t n_scored = 0;
};

/// Windows of `context` tokens, each `stride` tokens behind the one before; a token is scored once,
/// in the first window that predicts it.
Likelihood sliding_likelihood(const Model& model, std::span<const uint32_t> ids, size_t context,
                              size_t stride) {
  const bool progress = is_terminal(stderr);
  Likelihood sum;
  size_t scored_to = 1;  // ids before this one have been predicted (the first cannot be)
  for (size_t begin = 0; scored_to < ids.size(); begin += stride) {
    const size_t size = std::min(context, ids.size() - begin);
    Session session(model);
    const std::vector<float> values = session.log_likelihoods(ids.subspan(begin, size));
    for (size_t i = scored_to; i < begin + size; ++i) {
      sum.nll -= static_cast<double>(values[i - begin - 1]);
      ++sum.n_scored;
    }
    scored_to = begin + size;
    if (progress && scored_to < ids.size()) {
      note("{} of {} tokens, perplexity so far {:.4f}", scored_to, ids.size(),
           std::exp(sum.nll / static_cast<double>(sum.n_scored)));
    }
  }
  return sum;
}

int perplexity(const ScoreOptions& flags, Action& action) {
  const std::string text = flags.text.read();
  const Model model = flags.model.load_model(action).model;
  const std::vector<uint32_t> ids = model.tokenize(text, {.add_bos = {}, .parse_special = false});
  if (ids.size() < 2) {
    fail(ErrorKind::kInvalidFile, flags.text.file, "expected at least 2 tokens, got {}",
         ids.size());
  }
  const auto context = static_cast<size_t>(model.info().context);
  size_t stride = ids.size() <= context ? context : std::max<size_t>(1, context / 2);
  if (flags.stride > 0) stride = static_cast<size_t>(flags.stride);
  // The first token of a window is not predicted, so windows must overlap by one at least.
  if (ids.size() > context && stride >= context) {
    fail(ErrorKind::kInvalidArgument, "--stride", "expected 1..{} (below the context), got {}",
         context - 1, stride);
  }
  const Likelihood sum = sliding_likelihood(model, ids, context, stride);
  const double nll = sum.nll / static_cast<double>(sum.n_scored);
  if (flags.json) {
    print_json({{"tokens", sum.n_scored}, {"nll", nll}, {"ppl", std::exp(nll)}});
  } else {
    out("perplexity {:.4f} (mean negative log-likelihood {:.6f} over {} tokens, {})\n",
        std::exp(nll), nll, sum.n_scored,
        ids.size() <= context ? "one window"
                              : fmt::format("windows of {}, stride {}", context, stride));
  }
  flush_out();
  return kExitOk;
}

}  // namespace

void add_score(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ScoreOptions>();
  CLI::App* command =
      add_command(app, action, "logits", "Print the logits behind a text",
                  "  tessera logits model.gguf \"The capital of France is\" --top 5\n"
                  "  tessera logits model.gguf --ids 504,3575,282 --activations f32 --json\n"
                  "  tessera logits model.gguf \"a b c\" --all-positions --json",
                  [flags, &action] { return logits(*flags, action); });
  flags->model.add_run_flags(*command);
  flags->text.text_option =
      command->add_option("TEXT", flags->text.text, "Text to read; without it, standard input")
          ->type_name("");
  flags->ids_option = command->add_option("--ids", flags->ids, "Token ids instead of a text: 1,2,3")
                          ->delimiter(',')
                          ->allow_extra_args(false)
                          ->check(integer_between(0, UINT32_MAX));
  command->add_flag("--special,!--no-special", flags->parse_special,
                    "Turn the text of special tokens into these tokens; default: no");
  command->add_option("--top", flags->top, "How many of the largest logits to print")
      ->check(integer_between(1, INT32_MAX))
      ->capture_default_str();
  command->add_flag("--all-positions", flags->all_positions,
                    "Behind every token, not the last only");
  command->add_flag("--json", flags->json,
                    "Print one object: ids, top; with --all-positions one line a position");

  const auto score = std::make_shared<ScoreOptions>();
  command = add_command(
      app, action, "perplexity", "Measure how well a model predicts a text",
      "  tessera perplexity model.gguf -f book.txt\n"
      "  tessera perplexity default -f book.txt -c 512 --stride 256 --activations f32 --json",
      [score, &action] { return perplexity(*score, action); });
  score->model.add_run_flags(*command);
  score->text.file_option =
      command->add_option("-f,--file", score->text.file, "The text")->required();
  command
      ->add_option("--stride", score->stride,
                   "Tokens from one window to the next; each token is scored once; 0: one window "
                   "when the text fits, else half the context")
      ->check(integer_between(0, INT32_MAX))
      ->capture_default_str();
  command->add_flag("--json", score->json,
                    "Print one object: tokens, nll (mean, natural log), ppl");
}

}  // namespace tessera::cli
