#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/mapped_file.hpp"
#include "tensor/dtype.hpp"
#include "tensor/tensor.hpp"

// GGUF versions 2 and 3, little-endian (source: the public GGUF specification, ggml's
// docs/gguf.md).
//
//   header      magic "GGUF", u32 version, u64 n_tensors, u64 n_entries
//   metadata    entries: key, u32 type, value
//   tensor list name, u32 n_dims, u64 sizes (innermost first), u32 type, u64 offset
//   data        starts at the next multiple of `general.alignment` (32 if absent); so do its
//   tensors
//
// Nothing is copied but numbers: keys, strings and tensors are views into the file.

namespace tessera {

/// Types of metadata values, with their numbers in the file.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
/// "u8", ..., "string", "array"; `type` is one of the above.
std::string_view name(GgufType type);

struct GgufValue;

/// An array of one element type; arrays of arrays are refused when a file is read.
struct GgufArray {
  GgufType element_type = GgufType::kU8;
  uint64_t size = 0;
  std::span<const std::byte> bytes;       ///< numbers and booleans, as in the file (not aligned)
  std::vector<std::string_view> strings;  ///< strings

  /// Element `i` < size.
  GgufValue at(uint64_t i) const;
};

/// One metadata value: `type` as in the file, held as the widest C++ type of its kind.
struct GgufValue {
  GgufType type = GgufType::kU8;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> data;

  /// Type and value on one line for people, long strings and arrays abbreviated:
  /// `u32 30`, `string "llama"`, `array of 49152 string`.
  std::string describe() const;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;
  uint32_t ggml_type = 0;            ///< the type's number in the file
  std::string_view ggml_type_name;   ///< "Q4_1", "IQ4_XS"
  DType dtype = DType::kNone;        ///< kNone: a valid GGUF type that tessera cannot compute with
  Shape shape;                       ///< outermost first: the reverse of the file's order
  uint64_t offset_bytes = 0;         ///< from the start of the data section
  std::span<const std::byte> bytes;  ///< exactly the tensor, without padding
};

/// A GGUF file that has been checked from end to end: every size, offset and length lies inside the
/// file, keys and tensor names are unique, tensors are aligned and do not overlap. What the keys
/// mean is the business of their users, who ask with the getters below.
class GgufFile {
 public:
  /// Maps the file. Throws Error{kIo}, or Error{kInvalidFile} saying what is wrong in one line.
  static GgufFile open(const std::filesystem::path& path);

  /// Reads from memory, aligned to 32 bytes, that outlives the result; `where` is what errors call
  /// it. Throws Error{kInvalidFile}.
  static GgufFile parse(std::span<const std::byte> bytes, std::string where);

  const std::string& where() const { return where_; }
  uint64_t size_bytes() const { return size_bytes_; }
  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  uint64_t data_offset() const { return data_offset_; }

  /// In the order of the file.
  std::span<const GgufEntry> metadata() const { return entries_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }

  /// nullptr when there is none.
  const GgufValue* find(std::string_view key) const;
  const GgufTensor* find_tensor(std::string_view name) const;

  // Typed metadata. `require_` throws Error{kInvalidFile} when the key is missing, `optional_`
  // gives nullopt; both throw when the value has another type or lies outside [min, max]. Any
  // integer type serves as an integer, f32 and f64 as a float. NaN is in no range.

  int64_t require_int(std::string_view key, int64_t min, int64_t max) const;
  double require_float(std::string_view key, double min, double max) const;
  bool require_bool(std::string_view key) const;
  std::string_view require_string(std::string_view key) const;
  std::span<const std::string_view> require_strings(std::string_view key) const;
  std::vector<int64_t> require_ints(std::string_view key, int64_t min, int64_t max) const;
  std::vector<float> require_floats(std::string_view key) const;

  std::optional<int64_t> optional_int(std::string_view key, int64_t min, int64_t max) const;
  std::optional<double> optional_float(std::string_view key, double min, double max) const;
  std::optional<bool> optional_bool(std::string_view key) const;
  std::optional<std::string_view> optional_string(std::string_view key) const;
  std::optional<std::span<const std::string_view>> optional_strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> optional_ints(std::string_view key, int64_t min,
                                                    int64_t max) const;
  std::optional<std::vector<float>> optional_floats(std::string_view key) const;

  /// The tensor of that name and shape. Throws Error{kInvalidFile} when it is missing or has
  /// another shape, Error{kUnsupported} when its type is one that tessera cannot compute with.
  const GgufTensor& require_tensor(std::string_view name, const Shape& shape) const;

 private:
  friend class GgufReader;
  explicit GgufFile(std::string where) : where_(std::move(where)) {}

  std::string where_;
  uint64_t size_bytes_ = 0;
  uint32_t version_ = 0;
  uint32_t alignment_ = 0;
  uint64_t data_offset_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> entries_by_key_;   ///< indices, sorted
  std::vector<uint32_t> tensors_by_name_;  ///< indices, sorted
  std::optional<MappedFile> map_;
};

}  // namespace tessera
