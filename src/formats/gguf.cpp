#include "formats/gguf.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "formats/ggml_types.hpp"
#include "formats/gguf_scalar.hpp"
#include "formats/text.hpp"

namespace tessera {
namespace {

template <typename T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  return value;
}

/// An integer of any type within [min, max], else nullopt.
std::optional<int64_t> as_int(const GgufValue& value, int64_t min, int64_t max) {
  std::optional<int64_t> number;
  if (const auto* whole = std::get_if<int64_t>(&value.data)) number = *whole;
  if (const auto* natural = std::get_if<uint64_t>(&value.data)) {
    if (!std::in_range<int64_t>(*natural)) return std::nullopt;
    number = static_cast<int64_t>(*natural);
  }
  if (!number || *number < min || *number > max) return std::nullopt;
  return number;
}

bool is_integer(GgufType type) {
  return type != GgufType::kF32 && type != GgufType::kF64 && type != GgufType::kBool &&
         type != GgufType::kString && type != GgufType::kArray;
}

[[noreturn]] void refuse_missing(const GgufFile& file, std::string_view key,
                                 std::string_view expected) {
  fail(ErrorKind::kInvalidFile, file.where(), "metadata key {} is missing, expected {}",
       printable(key), expected);
}

[[noreturn]] void refuse_value(const GgufFile& file, std::string_view key,
                               std::string_view expected, std::string_view got) {
  fail(ErrorKind::kInvalidFile, file.where(), "metadata key {} is {}, expected {}", printable(key),
       got, expected);
}

std::string int_range(int64_t min, int64_t max) {
  return fmt::format("an integer from {} to {}", min, max);
}

std::string float_range(double min, double max) {
  return fmt::format("a float from {:g} to {:g}", min, max);
}

const GgufArray* find_array(const GgufFile& file, std::string_view key, std::string_view expected,
                            bool (*is_element)(GgufType)) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<GgufArray>(&value->data);
  if (array == nullptr || !is_element(array->element_type)) {
    refuse_value(file, key, expected, value->describe());
  }
  return array;
}

constexpr std::string_view kStrings = "an array of strings";
constexpr std::string_view kFloats = "an array of floats";

std::string int_array_range(int64_t min, int64_t max) {
  return fmt::format("an array of integers from {} to {}", min, max);
}

}  // namespace

std::string_view name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                       "i32", "f32", "bool", "string", "array",
                                                       "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

size_t gguf_scalar_bytes(GgufType type) {
  constexpr std::array<uint8_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<size_t>(type)];
}

GgufValue read_gguf_scalar(GgufType type, const std::byte* source) {
  GgufValue value = {.type = type, .data = {}};
  switch (type) {
    case GgufType::kU8:
      value.data = uint64_t{load<uint8_t>(source)};
      break;
    case GgufType::kI8:
      value.data = int64_t{load<int8_t>(source)};
      break;
    case GgufType::kU16:
      value.data = uint64_t{load<uint16_t>(source)};
      break;
    case GgufType::kI16:
      value.data = int64_t{load<int16_t>(source)};
      break;
    case GgufType::kU32:
      value.data = uint64_t{load<uint32_t>(source)};
      break;
    case GgufType::kI32:
      value.data = int64_t{load<int32_t>(source)};
      break;
    case GgufType::kU64:
      value.data = load<uint64_t>(source);
      break;
    case GgufType::kI64:
      value.data = load<int64_t>(source);
      break;
    case GgufType::kF32:
      value.data = double{load<float>(source)};
      break;
    case GgufType::kF64:
      value.data = load<double>(source);
      break;
    case GgufType::kBool:
      value.data = load<uint8_t>(source) != 0;
      break;
    case GgufType::kString:
    case GgufType::kArray:
      TESSERA_DCHECK(false);
      break;
  }
  return value;
}

GgufValue GgufArray::at(uint64_t i) const {
  TESSERA_DCHECK(i < size);
  if (element_type == GgufType::kString) {
    return {.type = element_type, .data = strings[static_cast<size_t>(i)]};
  }
  return read_gguf_scalar(element_type, bytes.data() + i * gguf_scalar_bytes(element_type));
}

std::string GgufValue::describe() const {
  struct Visitor {
    std::string_view type;
    std::string operator()(uint64_t number) const { return fmt::format("{} {}", type, number); }
    std::string operator()(int64_t number) const { return fmt::format("{} {}", type, number); }
    std::string operator()(double number) const { return fmt::format("{} {:g}", type, number); }
    std::string operator()(bool flag) const { return fmt::format("{} {}", type, flag); }
    std::string operator()(std::string_view text) const {
      return fmt::format("{} {}", type, printable(text));
    }
    std::string operator()(const GgufArray& array) const {
      return fmt::format("array of {} {}", array.size, name(array.element_type));
    }
  };
  return std::visit(Visitor{name(type)}, data);
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto key_of = [&](uint32_t i) { return entries_[i].key; };
  const auto found = std::ranges::lower_bound(entries_by_key_, key, {}, key_of);
  if (found == entries_by_key_.end() || key_of(*found) != key) return nullptr;
  return &entries_[*found].value;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto name_of = [&](uint32_t i) { return tensors_[i].name; };
  const auto found = std::ranges::lower_bound(tensors_by_name_, name, {}, name_of);
  if (found == tensors_by_name_.end() || name_of(*found) != name) return nullptr;
  return &tensors_[*found];
}

std::optional<int64_t> GgufFile::optional_int(std::string_view key, int64_t min,
                                              int64_t max) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_int(*value, min, max);
  if (!number) refuse_value(*this, key, int_range(min, max), value->describe());
  return number;
}

std::optional<double> GgufFile::optional_float(std::string_view key, double min, double max) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<double>(&value->data);
  if (number == nullptr || !(*number >= min && *number <= max)) {
    refuse_value(*this, key, float_range(min, max), value->describe());
  }
  return *number;
}

std::optional<bool> GgufFile::optional_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(&value->data);
  if (flag == nullptr) refuse_value(*this, key, "a bool", value->describe());
  return *flag;
}

std::optional<std::string_view> GgufFile::optional_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string_view>(&value->data);
  if (text == nullptr) refuse_value(*this, key, "a string", value->describe());
  return *text;
}

std::optional<std::span<const std::string_view>> GgufFile::optional_strings(
    std::string_view key) const {
  const GgufArray* array =
      find_array(*this, key, kStrings, [](GgufType type) { return type == GgufType::kString; });
  if (array == nullptr) return std::nullopt;
  return array->strings;
}

std::optional<std::vector<int64_t>> GgufFile::optional_ints(std::string_view key, int64_t min,
                                                            int64_t max) const {
  const GgufArray* array = find_array(*this, key, int_array_range(min, max), is_integer);
  if (array == nullptr) return std::nullopt;
  std::vector<int64_t> numbers(static_cast<size_t>(array->size));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const GgufValue element = array->at(i);
    const auto number = as_int(element, min, max);
    if (!number) {
      refuse_value(*this, key, int_array_range(min, max),
                   fmt::format("{} at index {}", element.describe(), i));
    }
    numbers[i] = *number;
  }
  return numbers;
}

std::optional<std::vector<float>> GgufFile::optional_floats(std::string_view key) const {
  const GgufArray* array =
      find_array(*this, key, kFloats, [](GgufType type) { return type == GgufType::kF32; });
  if (array == nullptr) return std::nullopt;
  std::vector<float> numbers(static_cast<size_t>(array->size));
  if (!numbers.empty()) std::memcpy(numbers.data(), array->bytes.data(), array->bytes.size());
  return numbers;
}

int64_t GgufFile::require_int(std::string_view key, int64_t min, int64_t max) const {
  const auto value = optional_int(key, min, max);
  if (!value) refuse_missing(*this, key, int_range(min, max));
  return *value;
}

double GgufFile::require_float(std::string_view key, double min, double max) const {
  const auto value = optional_float(key, min, max);
  if (!value) refuse_missing(*this, key, float_range(min, max));
  return *value;
}

bool GgufFile::require_bool(std::string_view key) const {
  const auto value = optional_bool(key);
  if (!value) refuse_missing(*this, key, "a bool");
  return *value;
}

std::string_view GgufFile::require_string(std::string_view key) const {
  const auto value = optional_string(key);
  if (!value) refuse_missing(*this, key, "a string");
  return *value;
}

std::span<const std::string_view> GgufFile::require_strings(std::string_view key) const {
  const auto value = optional_strings(key);
  if (!value) refuse_missing(*this, key, kStrings);
  return *value;
}

std::vector<int64_t> GgufFile::require_ints(std::string_view key, int64_t min, int64_t max) const {
  auto value = optional_ints(key, min, max);
  if (!value) refuse_missing(*this, key, int_array_range(min, max));
  return *std::move(value);
}

std::vector<float> GgufFile::require_floats(std::string_view key) const {
  auto value = optional_floats(key);
  if (!value) refuse_missing(*this, key, kFloats);
  return *std::move(value);
}

const GgufTensor& GgufFile::require_tensor(std::string_view name, const Shape& shape) const {
  const GgufTensor* tensor = find_tensor(name);
  if (tensor == nullptr) {
    fail(ErrorKind::kInvalidFile, where_, "tensor {} of shape {} is missing", printable(name),
         shape.to_string());
  }
  if (tensor->shape != shape) {
    fail(ErrorKind::kInvalidFile, where_, "tensor {} has shape {}, expected {}", printable(name),
         tensor->shape.to_string(), shape.to_string());
  }
  if (tensor->dtype == DType::kNone) {
    fail(ErrorKind::kUnsupported, where_,
         "tensor {} has type {} ({}), which tessera cannot compute with; convert the model to one "
         "of {}",
         printable(name), tensor->ggml_type_name, tensor->ggml_type, supported_ggml_types());
  }
  return *tensor;
}

}  // namespace tessera
