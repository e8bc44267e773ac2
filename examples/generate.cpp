// Continues a prompt: generate MODEL.gguf PROMPT

#include <cstdio>
#include <string>
#include <string_view>
#include <tessera/tessera.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
    return 2;
  }
  try {
    const tessera::Model model = tessera::Model::load(argv[1]);
    tessera::Session session(model);
    const tessera::Generation generation =
        session.generate(argv[2], {.max_tokens = 64, .temperature = 0}, [](std::string_view text) {
          std::fwrite(text.data(), 1, text.size(), stdout);
          return std::fflush(stdout) == 0;  // stop when nobody reads any more
        });
    std::fprintf(stderr, "\n%zu tokens, finished by %s\n", generation.ids.size(),
                 std::string(name(generation.finish_reason)).c_str());
  } catch (const tessera::Error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
