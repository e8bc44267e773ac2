#include "formats/gguf_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <type_traits>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/ggml_types.hpp"
#include "formats/text.hpp"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& target, std::span<const std::byte> bytes) {
  const size_t size = target.size();
  target.resize(size + bytes.size());
  if (!bytes.empty()) std::memcpy(target.data() + size, bytes.data(), bytes.size());
}

template <typename T>
requires std::is_arithmetic_v<T>
void put(Bytes& target, T value) {
  append(target, std::as_bytes(std::span(&value, 1)));
}

void put(Bytes& target, GgufType type) {
  put(target, static_cast<uint32_t>(type));
}

void put(Bytes& target, std::string_view text) {
  put(target, uint64_t{text.size()});
  append(target, std::as_bytes(std::span(text)));
}

void put_array(Bytes& target, GgufType element_type, uint64_t size,
               std::span<const std::byte> elements) {
  put(target, element_type);
  put(target, size);
  append(target, elements);
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::kInvalidArgument, "GGUF writer", format, std::forward<Args>(args)...);
}

void check_name(std::string_view what, std::string_view text, size_t max_bytes) {
  if (text.empty() || text.size() > max_bytes || text.find('\0') != std::string_view::npos ||
      !is_valid_utf8(text)) {
    refuse("{} {} is not a name: expected 1 to {} bytes of UTF-8 without NUL", what,
           printable(text), max_bytes);
  }
}

/// Adds `text` to a sorted list of names that must be unique.
void insert_unique(std::vector<std::string>& sorted, std::string_view what, std::string_view text) {
  const auto place = std::ranges::lower_bound(sorted, text);
  if (place != sorted.end() && *place == text) refuse("{} {} comes twice", what, printable(text));
  sorted.emplace(place, text);
}

/// Writes one value behind its type.
struct PutValue {
  Bytes& target;
  GgufType type;

  void operator()(uint64_t number) const { put_integer(number); }
  void operator()(int64_t number) const { put_integer(number); }
  void operator()(double number) const {
    if (type == GgufType::kF32) {
      put(target, static_cast<float>(number));
    } else {
      put(target, number);
    }
  }
  void operator()(bool flag) const { put(target, static_cast<uint8_t>(flag)); }
  void operator()(std::string_view text) const { put(target, text); }
  void operator()(const GgufArray& array) const {
    put_array(target, array.element_type, array.size, array.bytes);
    for (const std::string_view text : array.strings) put(target, text);
  }

 private:
  template <typename T>
  void put_integer(T number) const {
    switch (type) {
      case GgufType::kU8:
      case GgufType::kI8:
        return put(target, static_cast<uint8_t>(number));
      case GgufType::kU16:
      case GgufType::kI16:
        return put(target, static_cast<uint16_t>(number));
      case GgufType::kU32:
      case GgufType::kI32:
        return put(target, static_cast<uint32_t>(number));
      default:
        return put(target, number);
    }
  }
};

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  if (!std::has_single_bit(alignment) || alignment < 8) {
    refuse("alignment {}, expected a power of two and at least 8", alignment);
  }
  if (alignment != 32) add_u32("general.alignment", alignment);
}

void GgufWriter::begin_entry(std::string_view key, GgufType type) {
  check_name("metadata key", key, 65535);
  insert_unique(keys_, "metadata key", key);
  ++n_entries_;
  put(entries_, key);
  put(entries_, type);
}

void GgufWriter::add_u32(std::string_view key, uint32_t value) {
  begin_entry(key, GgufType::kU32);
  put(entries_, value);
}

void GgufWriter::add_i32(std::string_view key, int32_t value) {
  begin_entry(key, GgufType::kI32);
  put(entries_, value);
}

void GgufWriter::add_u64(std::string_view key, uint64_t value) {
  begin_entry(key, GgufType::kU64);
  put(entries_, value);
}

void GgufWriter::add_f32(std::string_view key, float value) {
  begin_entry(key, GgufType::kF32);
  put(entries_, value);
}

void GgufWriter::add_f64(std::string_view key, double value) {
  begin_entry(key, GgufType::kF64);
  put(entries_, value);
}

void GgufWriter::add_bool(std::string_view key, bool value) {
  begin_entry(key, GgufType::kBool);
  put(entries_, static_cast<uint8_t>(value));
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  begin_entry(key, GgufType::kString);
  put(entries_, value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_entry(key, GgufType::kArray);
  put_array(entries_, GgufType::kString, values.size(), {});
  for (const std::string& value : values) put(entries_, std::string_view(value));
}

void GgufWriter::add_i32s(std::string_view key, std::span<const int32_t> values) {
  begin_entry(key, GgufType::kArray);
  put_array(entries_, GgufType::kI32, values.size(), std::as_bytes(values));
}

void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  begin_entry(key, GgufType::kArray);
  put_array(entries_, GgufType::kF32, values.size(), std::as_bytes(values));
}

void GgufWriter::add(std::string_view key, const GgufValue& value) {
  begin_entry(key, value.type);
  std::visit(PutValue{entries_, value.type}, value.data);
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const Shape& shape,
                            std::span<const std::byte> bytes) {
  check_name("tensor name", name, 64);
  const GgmlType* type = ggml_type_of(dtype);
  if (type == nullptr) {
    refuse("tensor {} has type {}, expected one of {}", printable(name), tessera::name(dtype),
           supported_ggml_types());
  }
  const auto count = shape.checked_count();
  if (shape.rank() == 0 || !count || *count == 0 || shape[-1] % type->block_size != 0) {
    refuse("tensor {} of type {} has shape {}, expected 1 to 4 sizes, rows a multiple of {}",
           printable(name), type->name, shape.to_string(), type->block_size);
  }
  const auto n_bytes = checked_mul<int64_t>(*count / type->block_size, type->block_bytes);
  if (!n_bytes || static_cast<uint64_t>(*n_bytes) != bytes.size()) {
    refuse("tensor {} of type {} and shape {} comes with {} bytes, expected {}", printable(name),
           type->name, shape.to_string(), bytes.size(), n_bytes.value_or(0));
  }
  insert_unique(names_, "tensor", name);
  put(infos_, name);
  put(infos_, static_cast<uint32_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) put(infos_, static_cast<uint64_t>(shape[i]));
  put(infos_, type->id);
  put(infos_, next_offset_);
  data_.push_back(bytes);
  next_offset_ += round_up<uint64_t>(bytes.size(), alignment_);
}

/// Everything before the data section, padded to its start.
std::vector<std::byte> GgufWriter::head() const {
  Bytes bytes;
  for (const char letter : {'G', 'G', 'U', 'F'}) put(bytes, letter);
  put(bytes, uint32_t{3});
  put(bytes, uint64_t{data_.size()});
  put(bytes, n_entries_);
  append(bytes, entries_);
  append(bytes, infos_);
  bytes.resize(round_up<size_t>(bytes.size(), alignment_));
  return bytes;
}

std::vector<std::byte> GgufWriter::to_bytes() const {
  Bytes bytes = head();
  for (const auto tensor : data_) {
    append(bytes, tensor);
    bytes.resize(round_up<size_t>(bytes.size(), alignment_));
  }
  return bytes;
}

void GgufWriter::write(const std::filesystem::path& path) const {
  std::filesystem::path temporary = path;
  temporary += ".part";
  const auto refuse_io = [&](int error) {
    std::remove(temporary.c_str());
    fail(ErrorKind::kIo, path.string(), "cannot write: {}", std::generic_category().message(error));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"),
                                                       std::fclose);
  if (!file) refuse_io(errno);
  const auto put_bytes = [&](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) refuse_io(errno);
  };
  put_bytes(head());
  for (const auto tensor : data_) {
    put_bytes(tensor);
    put_bytes(Bytes(round_up<size_t>(tensor.size(), alignment_) - tensor.size()));
  }
  // On disk before it takes the place of an older file, so that a power cut leaves one of the two.
  if (std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0) refuse_io(errno);
  if (std::fclose(file.release()) != 0) refuse_io(errno);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) refuse_io(errno);
}

}  // namespace tessera
