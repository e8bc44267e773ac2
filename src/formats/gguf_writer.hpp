#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.hpp"
#include "tensor/dtype.hpp"
#include "tensor/tensor.hpp"

namespace tessera {

/// Builds a GGUF version 3 file. Metadata is copied when it is added; the bytes of tensors are only
/// referred to and must live until the file is written. What GgufFile would refuse to read (a key
/// or tensor given twice, a shape that does not fit its type or bytes) throws
/// Error{kInvalidArgument}.
class GgufWriter {
 public:
  /// `alignment`: a power of two, at least 8; written to the file when it is not GGUF's default.
  explicit GgufWriter(uint32_t alignment = 32);

  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_f32(std::string_view key, float value);
  void add_f64(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  /// Any value as it was read from another file.
  void add(std::string_view key, const GgufValue& value);

  /// A dense tensor, `shape` outermost first.
  void add_tensor(std::string_view name, DType dtype, const Shape& shape,
                  std::span<const std::byte> bytes);

  /// The whole file in memory.
  std::vector<std::byte> to_bytes() const;

  /// Writes to a temporary file beside `path`, then renames it: readers see the old file or the new
  /// one. Throws Error{kIo}.
  void write(const std::filesystem::path& path) const;

 private:
  void begin_entry(std::string_view key, GgufType type);
  std::vector<std::byte> head() const;

  uint32_t alignment_;
  uint64_t n_entries_ = 0;
  uint64_t next_offset_ = 0;                      ///< of the next tensor in the data section
  std::vector<std::byte> entries_;                ///< as in the file
  std::vector<std::byte> infos_;                  ///< the tensor list, as in the file
  std::vector<std::string> keys_;                 ///< sorted
  std::vector<std::span<const std::byte>> data_;  ///< of the tensors, in the order of the file
  std::vector<std::string> names_;                ///< of tensors, sorted
};

}  // namespace tessera
