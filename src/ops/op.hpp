#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.hpp"
#include "device/queue.hpp"
#include "tensor/tensor.hpp"

namespace tessera {

// A contract is a struct with
//   kName                    the op's name in tables, flags and traces
//   Args                     outputs first; optional tensors may be left out
//   visit(args, v)           calls v(name, tensor, Access) for every tensor of the arguments
//   validate(args)           throws Error{kInvalidArgument}: expected, got, what to do
//   cost(args)               FLOPs and least bytes moved
//   reference(args)          plain loops in f64 over tensors in host memory (op_ref.cpp)
// and a function of the same name that calls launch(). Kernels assume validated arguments.

enum class Access { kRead, kWrite, kReadWrite };

/// How activations enter products with weights in a block format: as they are, or as q8
/// (ops/quantize/quantize_rows.hpp). Plain weights always see exact activations.
enum class Activations : uint8_t { kExact, kQ8 };

namespace ops {

/// Throws unless the tensor is there, has one of the dtypes and exactly this shape; -1 matches any
/// size. `what` is "op.tensor".
void expect(std::string_view what, const Tensor& tensor, std::initializer_list<DType> dtypes,
            std::initializer_list<int64_t> shape);
/// The same for a tensor that may be left out.
void expect_optional(std::string_view what, const Tensor& tensor,
                     std::initializer_list<DType> dtypes, std::initializer_list<int64_t> shape);
/// Throws unless the condition holds.
template <typename... Parts>
void require(bool condition, std::string_view what, fmt::format_string<Parts...> format,
             Parts&&... parts) {
  if (!condition) {
    fail(ErrorKind::kInvalidArgument, std::string(what), format, std::forward<Parts>(parts)...);
  }
}

/// f32, f16, bf16 and the GGUF block formats: what a weight may be stored in.
extern const std::initializer_list<DType> kWeightTypes;
bool is_weight_type(DType dtype);

/// Bytes of the values of a tensor, strides left out; 0 for an absent one.
double bytes_of(const Tensor& tensor);

/// Throws when a written tensor shares bytes with another one.
struct AliasCheck {
  struct Range {
    std::string_view name;
    const Buffer* buffer;
    int64_t begin, end;
    Access access;
  };
  std::string_view op;
  std::array<Range, 24> ranges;
  int n_ranges = 0;
  void add(std::string_view name, const Tensor& tensor, Access access);
};

}  // namespace ops

/// Validates, picks a row and records it. The one way in which an op gets onto a queue.
template <typename Op>
void launch(Queue& queue, const typename Op::Args& args) {
  Op::validate(args);
  ops::AliasCheck alias{.op = Op::kName, .ranges = {}, .n_ranges = 0};
  Op::visit(args, [&](std::string_view name, const Tensor& tensor, Access access) {
    if (tensor.defined()) alias.add(name, tensor, access);
  });
  launch_row(queue, queue.table().pick<Op>(args, queue.device().caps()), args);
}

/// Records this row, whatever the table would pick (tests and benchmarks).
template <typename Op>
void launch_row(Queue& queue, const Row<Op>& row, const typename Op::Args& args) {
  const int64_t scratch_bytes = row.scratch_bytes ? row.scratch_bytes(args) : 0;
  if (scratch_bytes > 0) {
    const Slot scratch(queue.arena(), DType::kI8, {scratch_bytes});
    if (row.traits.composed || !queue.planning()) row.run(queue, args, scratch);
  } else if (row.traits.composed || !queue.planning()) {
    row.run(queue, args, Tensor{});
  }
  OpRecord record = {.op = Op::kName,
                     .row = row.name,
                     .composed = row.traits.composed,
                     .reference = row.traits.reference,
                     .cost = Op::cost(args),
                     .outputs = {}};
  Op::visit(args, [&](std::string_view name, const Tensor& tensor, Access access) {
    if (access != Access::kRead && tensor.defined()) record.outputs.emplace_back(name, tensor);
  });
  queue.note(record);
}

}  // namespace tessera
