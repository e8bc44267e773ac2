#pragma once

#include <memory>

#include "device/device.hpp"
#include "formats/gguf.hpp"
#include "models/language_model.hpp"
#include "ops/op.hpp"

namespace tessera {

/// The model of a GGUF file, its weights on `device` (used in place where the device can: the file
/// must outlive the model). Architectures: llama, qwen2.
///
/// Throws Error{kInvalidFile} naming the key or tensor that is missing, misshapen or out of range,
/// Error{kUnsupported} for an architecture, a rope scaling, a tensor type or a tensor that this
/// build cannot compute with.
std::unique_ptr<LanguageModel> load_gguf_model(const GgufFile& file, Device& device,
                                               Activations activations);

}  // namespace tessera
