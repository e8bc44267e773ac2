#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/ggml_types.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_scalar.hpp"
#include "formats/text.hpp"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "GGUF files are used in place");

/// Reads one file from front to back. A count or length from the file is compared with the bytes
/// that are left before anything is allocated or skipped for it.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, GgufFile& file) : bytes_(bytes), file_(file) {}

  void read() {
    file_.size_bytes_ = bytes_.size();
    read_header();
    for (uint64_t i = 0; i < n_entries_; ++i) read_entry();
    file_.entries_by_key_ = sorted_unique(file_.entries_, &GgufEntry::key, "metadata key");
    read_alignment();
    for (uint64_t i = 0; i < n_tensors_; ++i) read_tensor();
    file_.tensors_by_name_ = sorted_unique(file_.tensors_, &GgufTensor::name, "tensor");
    place_tensors();
  }

 private:
  // The fewest bytes that one item can take: bounds for the counts in the header.
  static constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;           // length, key, type, value
  static constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, ..., offset
  static constexpr uint64_t kMaxKeyBytes = 65535;
  static constexpr uint64_t kMaxTensorNameBytes = 64;
  static constexpr uint32_t kDefaultAlignment = 32;

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kInvalidFile, file_.where_, format, std::forward<Args>(args)...);
  }

  uint64_t left() const { return bytes_.size() - position_; }

  /// The next `n` bytes, which belong to `what`.
  const std::byte* take(uint64_t n, const char* what) {
    if (n > left()) {
      refuse(
          "the {} at byte {} takes {} bytes, but only {} are left; the file is damaged or was not "
          "copied whole",
          what, position_, n, left());
    }
    return bytes_.data() + std::exchange(position_, position_ + static_cast<size_t>(n));
  }

  template <typename T>
  T take_number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  std::string_view take_string(const char* what) {
    const auto length = take_number<uint64_t>(what);
    const std::byte* text = take(length, what);
    return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
  }

  /// A key or tensor name: what others will look up and print.
  std::string_view take_name(const char* what, uint64_t max_bytes) {
    const size_t start = position_;
    const std::string_view text = take_string(what);
    if (text.empty() || text.size() > max_bytes) {
      refuse("the {} at byte {} has {} bytes, expected 1 to {}", what, start, text.size(),
             max_bytes);
    }
    if (text.find('\0') != std::string_view::npos) {
      refuse("the {} {} at byte {} contains a NUL byte", what, printable(text), start);
    }
    if (!is_valid_utf8(text)) {
      refuse("the {} {} at byte {} is not valid UTF-8", what, printable(text), start);
    }
    return text;
  }

  void read_header() {
    if (bytes_.empty()) refuse("the file is empty, expected a GGUF model");
    constexpr std::string_view kMagic = "GGUF";
    if (left() < kMagic.size() || std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0) {
      const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                   std::min(bytes_.size(), kMagic.size()));
      refuse("not a GGUF file: it starts with {}, expected the magic {}", printable(start),
             printable(kMagic));
    }
    position_ = kMagic.size();
    file_.version_ = take_number<uint32_t>("version");
    if (file_.version_ != 0 && (file_.version_ & 0xFFFF) == 0) {
      refuse(
          "version {:#010x} is byte-swapped: this is a big-endian GGUF file; convert it to "
          "little-endian",
          file_.version_);
    }
    if (file_.version_ != 2 && file_.version_ != 3) {
      refuse("GGUF version {}, expected 2 or 3; convert the model to one of these", file_.version_);
    }
    n_tensors_ = take_number<uint64_t>("tensor count");
    n_entries_ = take_number<uint64_t>("metadata count");
    if (n_entries_ > left() / kMinEntryBytes) {
      refuse("the header counts {} metadata entries, but the {} bytes behind it cannot hold them",
             n_entries_, left());
    }
    if (n_tensors_ > left() / kMinTensorBytes) {
      refuse("the header counts {} tensors, but the {} bytes behind it cannot hold them",
             n_tensors_, left());
    }
  }

  void read_entry() {
    const std::string_view key = take_name("metadata key", kMaxKeyBytes);
    const GgufType type = take_type(key, "type");
    GgufValue value = {.type = type, .data = {}};
    if (type == GgufType::kString) {
      value.data = take_string("string value");
    } else if (type == GgufType::kArray) {
      value.data = take_array(key);
    } else {
      const std::byte* source = take(gguf_scalar_bytes(type), "value");
      if (type == GgufType::kBool) check_bools({source, 1}, key);
      value = read_gguf_scalar(type, source);
    }
    file_.entries_.push_back({.key = key, .value = std::move(value)});
  }

  GgufType take_type(std::string_view key, const char* what) {
    const auto type = take_number<uint32_t>("value type");
    if (type > static_cast<uint32_t>(GgufType::kF64)) {
      refuse("metadata key {} has {} {}, expected 0 to {}", printable(key), what, type,
             static_cast<uint32_t>(GgufType::kF64));
    }
    return static_cast<GgufType>(type);
  }

  GgufArray take_array(std::string_view key) {
    GgufArray array;
    array.element_type = take_type(key, "element type");
    if (array.element_type == GgufType::kArray) {
      refuse("metadata key {} is an array of arrays, which no model needs; remove the key",
             printable(key));
    }
    array.size = take_number<uint64_t>("array length");
    const bool strings = array.element_type == GgufType::kString;
    const uint64_t min_element_bytes =
        strings ? sizeof(uint64_t) : gguf_scalar_bytes(array.element_type);
    if (array.size > left() / min_element_bytes) {
      refuse(
          "metadata key {} counts {} elements of type {}, but only {} bytes are left in the file",
          printable(key), array.size, name(array.element_type), left());
    }
    if (strings) {
      for (uint64_t i = 0; i < array.size; ++i) {
        array.strings.push_back(take_string("string in an array"));
      }
    } else {
      const uint64_t n_bytes = array.size * min_element_bytes;
      array.bytes = {take(n_bytes, "array"), static_cast<size_t>(n_bytes)};
      if (array.element_type == GgufType::kBool) check_bools(array.bytes, key);
    }
    return array;
  }

  void check_bools(std::span<const std::byte> values, std::string_view key) const {
    for (const std::byte value : values) {
      if (value > std::byte{1}) {
        refuse("metadata key {} holds the boolean {}, expected 0 or 1", printable(key),
               std::to_integer<int>(value));
      }
    }
  }

  void read_alignment() {
    file_.alignment_ = kDefaultAlignment;
    const GgufValue* value = file_.find("general.alignment");
    if (value == nullptr) return;
    const auto* number = std::get_if<uint64_t>(&value->data);
    if (value->type != GgufType::kU32 || !std::has_single_bit(*number) || *number % 8 != 0) {
      refuse("\"general.alignment\" is {}, expected a u32 that is a power of two and at least 8",
             value->describe());
    }
    file_.alignment_ = static_cast<uint32_t>(*number);
  }

  void read_tensor() {
    GgufTensor tensor;
    tensor.name = take_name("tensor name", kMaxTensorNameBytes);
    const auto n_dims = take_number<uint32_t>("number of dimensions");
    if (n_dims < 1 || n_dims > kMaxDims) {
      refuse("tensor {} has {} dimensions, expected 1 to {}", printable(tensor.name), n_dims,
             kMaxDims);
    }
    std::array<int64_t, kMaxDims> sizes = {};  // outermost first, in the last n_dims places
    const auto dims = std::span(sizes).last(n_dims);
    for (size_t i = n_dims; i-- > 0;) {
      dims[i] = take_number<int64_t>("tensor shape");
      if (dims[i] <= 0) {
        refuse("tensor {} has a dimension of size {}, expected 1 or more", printable(tensor.name),
               dims[i]);
      }
    }
    switch (n_dims) {
      case 1:
        tensor.shape = {dims[0]};
        break;
      case 2:
        tensor.shape = {dims[0], dims[1]};
        break;
      case 3:
        tensor.shape = {dims[0], dims[1], dims[2]};
        break;
      default:
        tensor.shape = {dims[0], dims[1], dims[2], dims[3]};
        break;
    }

    tensor.ggml_type = take_number<uint32_t>("tensor type");
    const GgmlType* type = find_ggml_type(tensor.ggml_type);
    if (type == nullptr) {
      refuse("tensor {} has type {}, which GGUF does not define (any more)", printable(tensor.name),
             static_cast<int32_t>(tensor.ggml_type));
    }
    tensor.ggml_type_name = type->name;
    tensor.dtype = type->dtype;
    tensor.offset_bytes = take_number<uint64_t>("tensor offset");
    if (tensor.offset_bytes % file_.alignment_ != 0) {
      refuse("tensor {} starts at offset {}, expected a multiple of the alignment {}",
             printable(tensor.name), tensor.offset_bytes, file_.alignment_);
    }
    if (tensor.shape[-1] % type->block_size != 0) {
      refuse("tensor {} has rows of {} values, expected a multiple of {} for its type {}",
             printable(tensor.name), tensor.shape[-1], type->block_size, type->name);
    }
    const auto count = tensor.shape.checked_count();
    const auto n_bytes =
        count ? checked_mul<int64_t>(*count / type->block_size, type->block_bytes) : std::nullopt;
    if (!n_bytes) {
      refuse("tensor {} of shape {} and type {} is larger than any memory", printable(tensor.name),
             tensor.shape.to_string(), type->name);
    }
    file_.tensors_.push_back(tensor);
    tensor_bytes_.push_back(static_cast<uint64_t>(*n_bytes));
  }

  /// The tensor list ends here: finds the data section and every tensor in it.
  void place_tensors() {
    const auto start = round_up<uint64_t>(position_, file_.alignment_);
    file_.data_offset_ = start;
    const uint64_t data_bytes = bytes_.size() > start ? bytes_.size() - start : 0;
    for (size_t i = 0; i < file_.tensors_.size(); ++i) {
      GgufTensor& tensor = file_.tensors_[i];
      const auto end = checked_add(tensor.offset_bytes, tensor_bytes_[i]);
      if (!end || *end > data_bytes) {
        refuse(
            "tensor {} takes {} bytes at offset {}, but the file holds {} bytes of tensor data; it "
            "is damaged or was not copied whole",
            printable(tensor.name), tensor_bytes_[i], tensor.offset_bytes, data_bytes);
      }
      tensor.bytes = bytes_.subspan(static_cast<size_t>(start + tensor.offset_bytes),
                                    static_cast<size_t>(tensor_bytes_[i]));
    }
    std::vector<uint32_t> order(file_.tensors_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](uint32_t i) { return file_.tensors_[i].offset_bytes; });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& previous = file_.tensors_[order[i - 1]];
      const GgufTensor& next = file_.tensors_[order[i]];
      if (next.offset_bytes - previous.offset_bytes < previous.bytes.size()) {
        refuse("tensors {} and {} overlap", printable(previous.name), printable(next.name));
      }
    }
  }

  /// Indices of `items` sorted by name, for look-ups; refuses a name that comes twice.
  template <typename Item>
  std::vector<uint32_t> sorted_unique(const std::vector<Item>& items,
                                      std::string_view Item::*item_name, const char* what) const {
    std::vector<uint32_t> order(items.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto name_of = [&](uint32_t i) { return items[i].*item_name; };
    std::ranges::sort(order, {}, name_of);
    const auto twin = std::ranges::adjacent_find(order, {}, name_of);
    if (twin != order.end()) refuse("the {} {} comes twice", what, printable(name_of(*twin)));
    return order;
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  GgufFile& file_;
  uint64_t n_tensors_ = 0;
  uint64_t n_entries_ = 0;
  std::vector<uint64_t> tensor_bytes_;
};

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string where) {
  GgufFile file(std::move(where));
  GgufReader(bytes, file).read();
  return file;
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  MappedFile map = MappedFile::open(path);
  GgufFile file = parse(map.bytes(), path.string());
  file.map_ = std::move(map);
  return file;
}

}  // namespace tessera
