#include "cli/commands.hpp"
#include "cli/model_flags.hpp"

namespace tessera::cli {
namespace {

struct TextOptions {
  ModelFlags model;
  TextSource text;
  CLI::Option* bos = nullptr;
  bool add_bos = false, parse_special = false, json = false;
  std::vector<uint32_t> ids;
};

int tokenize(const TextOptions& flags, Action& action) {
  const std::string text = flags.text.read();
  const Model model = flags.model.load_model(action).model;
  TokenizeOptions options{.add_bos = std::nullopt, .parse_special = flags.parse_special};
  if (flags.bos->count() > 0) options.add_bos = flags.add_bos;
  const std::vector<uint32_t> ids = model.tokenize(text, options);
  if (flags.json) {
    Json pieces = Json::array();
    for (const uint32_t id : ids) pieces.push_back(model.piece(id));
    print_json({{"ids", ids}, {"pieces", pieces}});
  } else {
    for (const uint32_t id : ids) out("{:>7} {}\n", id, escaped(model.piece(id)));
  }
  flush_out();
  return kExitOk;
}

int detokenize(const TextOptions& flags, Action& action) {
  const Model model = flags.model.load_model(action).model;
  const std::string text = model.detokenize(flags.ids);
  if (flags.json) {
    print_json({{"text", text}});
  } else {
    write_out(text + "\n");
  }
  flush_out();
  return kExitOk;
}

}  // namespace

void add_text(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<TextOptions>();
  CLI::App* command =
      add_command(app, action, "tokenize", "Print the tokens of a text",
                  "  tessera tokenize model.gguf \"Hello world\"\n"
                  "  tessera tokenize model.gguf --special \"<|im_start|>user\" --json\n"
                  "  cat book.txt | tessera tokenize model.gguf | wc -l",
                  [flags, &action] { return tokenize(*flags, action); });
  flags->model.add_tokenizer_flags(*command);
  flags->text.text_option =
      command->add_option("TEXT", flags->text.text, "Text to split; without it, standard input")
          ->type_name("");
  flags->bos = command->add_flag("--bos,!--no-bos", flags->add_bos,
                                 "Put the begin-of-text token first; default: as the file says");
  command->add_flag("--special,!--no-special", flags->parse_special,
                    "Turn the text of special tokens into these tokens; default: no");
  command->add_flag("--json", flags->json, "Print one object: ids, pieces");

  const auto back = std::make_shared<TextOptions>();
  command = add_command(app, action, "detokenize", "Print the text of token ids",
                        "  tessera detokenize model.gguf 504 3575 282",
                        [back, &action] { return detokenize(*back, action); });
  back->model.add_tokenizer_flags(*command);
  command->add_option("ID", back->ids, "Token ids")
      ->required()
      ->check(integer_between(0, UINT32_MAX))
      ->type_name("");
  command->add_flag("--json", back->json, "Print one object: text");
}

}  // namespace tessera::cli
