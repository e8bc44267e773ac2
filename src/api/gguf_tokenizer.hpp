#pragma once

#include <string>

#include "formats/gguf.hpp"
#include "tokenizer/tokenizer.hpp"

namespace tessera {

/// The tokenizer that a GGUF file describes. `pretokenizer` overrides the file's label unless
/// empty. Throws Error{kInvalidFile} and Error{kUnsupported} as Tokenizer does.
Tokenizer read_gguf_tokenizer(const GgufFile& file, const std::string& pretokenizer);

}  // namespace tessera
