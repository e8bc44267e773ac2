// Writes a tiny random model: make_tiny_model OUT.gguf [--OPTION VALUE]...

#include <charconv>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/tiny_model.hpp"

namespace {

template <typename T>
T parse_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument("\"" + text + "\" is not a number");
  }
  return value;
}

tessera::DType parse_dtype(const std::string& text) {
  const auto dtype = tessera::dtype_from_name(text);
  if (!dtype) throw std::invalid_argument("\"" + text + "\" is not a type; try f32, q4_0 or q6_k");
  return *dtype;
}

int run(int argc, char** argv) {
  tessera::TinyModelOptions options;
  const auto set_int = [](int& target) {
    return [&target](const std::string& text) { target = parse_number<int>(text); };
  };
  const auto set_text = [](std::string& target) {
    return [&target](const std::string& text) { target = text; };
  };
  const std::map<std::string, std::function<void(const std::string&)>, std::less<>> setters = {
      {"--arch", set_text(options.arch)},
      {"--dtype", [&](const std::string& text) { options.dtype = parse_dtype(text); }},
      {"--d-model", set_int(options.d_model)},
      {"--layers", set_int(options.n_layers)},
      {"--heads", set_int(options.n_heads)},
      {"--kv-heads", set_int(options.n_kv_heads)},
      {"--d-ff", set_int(options.d_ff)},
      {"--context", set_int(options.context)},
      {"--vocab-size", set_int(options.vocab_size)},
      {"--tied", [&](const std::string& text) { options.tied = parse_number<int>(text) != 0; }},
      {"--rope-theta",
       [&](const std::string& text) { options.rope_theta = parse_number<double>(text); }},
      {"--rope-scaling", set_text(options.rope_scaling)},
      {"--rope-scaling-factor",
       [&](const std::string& text) { options.rope_scaling_factor = parse_number<double>(text); }},
      {"--pretokenizer", set_text(options.pretokenizer)},
      {"--seed", [&](const std::string& text) { options.seed = parse_number<uint64_t>(text); }},
  };
  if (argc < 2 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: make_tiny_model OUT.gguf [--OPTION VALUE]...\noptions:");
    for (const auto& [name, setter] : setters) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  for (int i = 2; i < argc; i += 2) {
    const auto setter = setters.find(std::string_view(argv[i]));
    if (setter == setters.end()) {
      std::fprintf(stderr, "make_tiny_model: unknown option %s\n", argv[i]);
      return 2;
    }
    setter->second(argv[i + 1]);
  }
  tessera::write_tiny_model(argv[1], options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_tiny_model: %s\n", error.what());
    return 1;
  }
}
