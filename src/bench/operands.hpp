#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/row.hpp"
#include "ops/cases.hpp"

namespace tessera::bench {

/// A case's tensors with memory on a device.
template <typename Op>
struct Operands {
  typename Op::Args args;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

/// Every tensor gets a buffer of its own, filled as the case says; outputs are zero.
template <typename Op>
Operands<Op> make_operands(Device& device, const Case<Op>& c) {
  Operands<Op> operands = {c.args, {}};
  uint64_t seed = 1;
  Op::visit(operands.args, [&](std::string_view name, Tensor& tensor, Access access) {
    if (!tensor.defined()) return;
    const int64_t size_bytes = std::max<int64_t>(tensor.span_bytes(), 1);
    operands.buffers.push_back(device.allocate(size_bytes));
    tensor.buffer = operands.buffers.back().get();
    const std::vector<std::byte> bytes =
        access == Access::kWrite ? std::vector<std::byte>(static_cast<size_t>(tensor.span_bytes()))
                                 : make_bytes(tensor, fill_of(c, name), seed++);
    write_tensor(tensor, bytes);
  });
  return operands;
}

/// What the op put out, decoded, by name; only types that decode to numbers.
template <typename Op>
std::vector<std::vector<double>> read_outputs(const typename Op::Args& args) {
  std::vector<std::vector<double>> outputs;
  Op::visit(args, [&](std::string_view, const Tensor& tensor, Access access) {
    if (!tensor.defined() || access == Access::kRead) return;
    outputs.push_back(decode(tensor, read_tensor(tensor)));
  });
  return outputs;
}

/// Largest difference of any output over the largest magnitude of that output of the reference; NaN
/// when one of the values is.
double relative_error(const std::vector<std::vector<double>>& outputs,
                      const std::vector<std::vector<double>>& reference);

/// A weight matrix, as the contracts call them.
inline bool is_weight(std::string_view name, const Tensor& tensor) {
  return tensor.shape.rank() == 2 &&
         (name.starts_with("w") || name == "gate" || name == "up" || name == "table");
}

/// "512x1536x576".
std::string join_sizes(const Shape& shape);

/// MxNxK of a product (rows, output features of all its outputs, input features); else the sizes of
/// the main input, with those of the keys behind an @ for attention; of a lookup, the output's.
template <typename Op>
std::string shape_label(const typename Op::Args& args) {
  Tensor output, input, keys;
  int64_t n_features = 0;
  bool product = false, lookup = false;
  Op::visit(args, [&](std::string_view name, const Tensor& tensor, Access access) {
    if (!tensor.defined()) return;
    if (access != Access::kRead) {
      if (!output.defined()) output = tensor;
      if (tensor.shape.rank() == 2) n_features += tensor.dim(1);
    }
    if (access != Access::kWrite && !input.defined()) input = tensor;
    if (name == "k" || name == "k_pages") keys = tensor;
    lookup = lookup || name == "table";
    product = product || is_weight(name, tensor);
  });
  if (lookup) return join_sizes(output.shape);
  if (product && output.shape.rank() == 2) {
    return join_sizes({output.dim(0), n_features, input.dim(-1)});
  }
  const std::string sizes = join_sizes((input.defined() ? input : output).shape);
  return keys.defined() ? sizes + "@" + join_sizes(keys.shape) : sizes;
}

/// Type of the weight, with that of quantised activations behind a slash; without a weight the type
/// of the keys, else of the first input.
template <typename Op>
std::string dtype_label(const typename Op::Args& args) {
  DType weight = DType::kNone, input = DType::kNone, activation = DType::kNone;
  Op::visit(args, [&](std::string_view tensor_name, const Tensor& tensor, Access access) {
    if (!tensor.defined() || access == Access::kWrite) return;
    if (input == DType::kNone) input = tensor.dtype;
    if (tensor_name == "x") activation = tensor.dtype;
    if (tensor_name == "k" || tensor_name == "k_pages") input = tensor.dtype;
    if (weight == DType::kNone && is_weight(tensor_name, tensor)) weight = tensor.dtype;
  });
  if (weight == DType::kNone) return std::string(name(input));
  bool quantised = activation == DType::kQ8;
  if constexpr (requires { args.activations; }) {
    quantised = args.activations == Activations::kQ8 && is_block_format(weight);
  }
  return std::string(name(weight)) + (quantised ? "/q8" : "");
}

/// A result with everything that is known before anything was measured.
template <typename Op>
BenchRow describe_row(const Device& device, const Case<Op>& c, const Row<Op>& row) {
  const Cost cost = Op::cost(c.args);
  BenchRow result;
  result.op = Op::kName;
  result.case_name = c.name;
  result.shape = shape_label<Op>(c.args);
  result.dtype = dtype_label<Op>(c.args);
  result.row = row.name;
  result.device = device.caps().kind;
  result.threads = device.caps().parallelism;
  result.flops = cost.flops;
  result.bytes = cost.bytes;
  result.origin = origin();
  return result;
}

}  // namespace tessera::bench
