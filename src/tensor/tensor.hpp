#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "tensor/dtype.hpp"

namespace tessera {

class Buffer;  // device/device.hpp; a tensor only points to it

/// How the values of a weight lie in memory. `prepare` (device/prepare.hpp) picks one layout that
/// every row selectable for the weight's uses can read.
enum class Layout : uint8_t {
  kPlain,  ///< rows outermost first, as in the file
};

inline constexpr int kMaxDims = 4;

/// Sizes, outermost first. Rank 0 is a scalar.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  /// Product of the sizes; nullopt on overflow or a negative size.
  std::optional<int64_t> checked_count() const;
  int64_t count() const;
  bool operator==(const Shape& other) const = default;
  std::string to_string() const;  ///< "[3, 576]"

 private:
  std::array<int64_t, kMaxDims> sizes_ = {};
  int rank_ = 0;
};

/// A view of values in a device buffer. Owns nothing. The last dimension is contiguous; the others
/// have strides in bytes, so that block formats and padded rows are the same thing.
struct Tensor {
  DType dtype = DType::kNone;
  Layout layout = Layout::kPlain;
  Shape shape;
  std::array<int64_t, kMaxDims> stride_bytes = {};  ///< of each dimension but the last
  Buffer* buffer = nullptr;
  int64_t offset_bytes = 0;

  /// A dense tensor. Throws when a block format's last dimension is no multiple of its block.
  static Tensor dense(DType dtype, Shape shape, Buffer* buffer = nullptr, int64_t offset_bytes = 0);

  bool defined() const { return dtype != DType::kNone; }
  int64_t dim(int i) const { return shape[i]; }
  /// Rows: the product of all dimensions but the last (1 for rank <= 1).
  int64_t n_rows() const;
  /// Bytes from the first value to behind the last one.
  int64_t span_bytes() const;
  bool is_dense() const;
  /// Rows `begin` to `begin + count` of the first dimension.
  Tensor slice(int64_t begin, int64_t count) const;
  /// The same dense values in another shape of equal count.
  Tensor reshaped(Shape shape) const;
};

}  // namespace tessera
