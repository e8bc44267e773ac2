// Reads a GGUF file from memory and touches everything that it offers. Only Error may come out, of
// the kind for invalid files and on one line.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "formats/gguf.hpp"
#include "tensor/convert.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Runs a getter, which may refuse.
template <typename Getter>
void try_get(Getter getter) {
  try {
    (void)getter();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kInvalidFile || error.kind() == ErrorKind::kUnsupported);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

void touch_metadata(const GgufFile& file) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const GgufEntry& entry : file.metadata()) {
    require(file.find(entry.key) == &entry.value);
    require(!entry.value.describe().empty());
    if (const auto* array = std::get_if<GgufArray>(&entry.value.data)) {
      for (uint64_t i = 0; i < array->size; ++i) require(!array->at(i).describe().empty());
    }
    try_get([&] { return file.require_int(entry.key, kMin, kMax); });
    try_get([&] { return file.require_float(entry.key, 0.0, 1.0); });
    try_get([&] { return file.require_bool(entry.key); });
    try_get([&] { return file.require_string(entry.key); });
    try_get([&] { return file.require_strings(entry.key); });
    try_get([&] { return file.require_ints(entry.key, 0, 1); });
    try_get([&] { return file.require_floats(entry.key); });
  }
}

void touch_tensor(const GgufFile& file, const GgufTensor& tensor) {
  require(file.find_tensor(tensor.name) == &tensor);
  require(!tensor.shape.to_string().empty() && !tensor.bytes.empty());
  try_get([&] { return file.require_tensor(tensor.name, tensor.shape); });
  volatile std::byte sink = tensor.bytes.front();
  sink = tensor.bytes.back();
  (void)sink;
  if (tensor.dtype == DType::kNone) return;
  const DTypeInfo& type = info(tensor.dtype);
  const auto block_bytes = static_cast<size_t>(type.block_bytes);
  std::vector<float> values(static_cast<size_t>(type.block_size));
  dequantize(tensor.dtype, tensor.bytes.data(), values.data(), type.block_size);
  dequantize(tensor.dtype, tensor.bytes.last(block_bytes).data(), values.data(), type.block_size);
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Exactly `size` bytes, so that the sanitizer sees the first one behind them, with the alignment
  // that parse() asks for.
  struct Release {
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{32}); }
  };
  const std::unique_ptr<void, Release> memory(::operator new (size, std::align_val_t{32}));
  if (size > 0) std::memcpy(memory.get(), data, size);
  const std::span<const std::byte> input(static_cast<const std::byte*>(memory.get()), size);
  tessera::try_get([&] {
    const tessera::GgufFile file = tessera::GgufFile::parse(input, "fuzz");
    tessera::touch_metadata(file);
    for (const tessera::GgufTensor& tensor : file.tensors()) tessera::touch_tensor(file, tensor);
    return 0;
  });
  return 0;
}
