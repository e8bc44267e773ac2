#include "webgpu/fixed_kernels.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace tessera::webgpu {
namespace {

using Words = std::span<const uint32_t>;
using enum FixedType;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

void any_size(std::string_view /*label*/, Words /*words*/) {}

/// The words at these places are divisible by 4.
template <size_t... kWords>
void quads(std::string_view label, Words words) {
  for (const size_t i : {kWords...}) {
    if (words[i] % 4 != 0) {
      fail(
          ErrorKind::kInvalidArgument, std::string(label),
          "expected uniform word {} to be divisible by 4, got {}; use an entry that takes any size",
          i, words[i]);
    }
  }
}

void rope_sizes(std::string_view label, Words words) {
  if (words[3] == 0 || words[3] % 2 != 0) {
    fail(ErrorKind::kInvalidArgument, std::string(label),
         "expected an even head_dim, got {}; pairs of dimensions are rotated together", words[3]);
  }
}

void rope_vec4_sizes(std::string_view label, Words words) {
  quads<3>(label, words);
  if (words[3] == 0 || words[3] > 512) {
    fail(ErrorKind::kInvalidArgument, std::string(label),
         "expected head_dim of 4 to 512, got {}; use the entry main", words[3]);
  }
}

void attention_sizes(std::string_view label, Words words) {
  const uint32_t n_heads = words[2], n_kv_heads = words[3], head_dim = words[4];
  if (n_kv_heads == 0 || n_heads % n_kv_heads != 0) {
    fail(ErrorKind::kInvalidArgument, std::string(label),
         "expected num_q_heads to be a multiple of num_kv_heads, got {} and {}", n_heads,
         n_kv_heads);
  }
  if (head_dim == 0 || head_dim > 256) {
    fail(ErrorKind::kInvalidArgument, std::string(label), "expected head_dim of 1 to 256, got {}",
         head_dim);
  }
}

void int4_sizes(std::string_view label, Words words) {
  if (words[3] == 0) {
    fail(ErrorKind::kInvalidArgument, std::string(label),
         "expected a group_size of at least 1, got 0");
  }
}

/// A workgroup for every `per_group` of the product of these words.
template <int64_t kPerGroup, size_t... kWords>
Grid flat(Words words) {
  return {.x = ceil_div((int64_t{words[kWords]} * ...), kPerGroup)};
}

template <int64_t kTile, size_t kRows, size_t kColumns>
Grid tiles(Words words) {
  return {.x = ceil_div(words[kColumns], kTile), .y = ceil_div(words[kRows], kTile)};
}

template <int64_t kPerGroup>
Grid rope_grid(Words words) {
  const int64_t n_heads = std::max(words[1], words[2]);
  return {.x = ceil_div(int64_t{words[0]} * n_heads * (words[3] / 2), kPerGroup)};
}

Grid attention_grid(Words words) {
  return {.x = words[0], .y = words[2]};
}

FixedBinding in(std::string_view name, FixedType type = kF32) {
  return {.name = name, .type = type, .written = false};
}
FixedBinding out(std::string_view name, FixedType type = kF32) {
  return {.name = name, .type = type, .written = true};
}

/// The twelve: one file each, and the entries on a quarter of the grid.
std::vector<FixedKernel> layer_kernels() {
  const auto norm = [](std::string_view file, FixedType type, bool bias) {
    std::vector<FixedBinding> bindings = {in("input", type), in("weight", type)};
    if (bias) bindings.push_back(in("bias", type));
    bindings.push_back(out("output", type));
    return FixedKernel{.name = bias ? "layernorm" : "rmsnorm",
                       .file = file,
                       .entry = type == kF32 ? "main" : "main_vec4",
                       .bindings = std::move(bindings),
                       .uniform = {"seq_len", "hidden_size", "eps_bits", "pad"},
                       .validate = type == kF32 ? any_size : quads<1>,
                       .grid = type == kF32 ? flat<1, 0> : flat<4, 0>};
  };
  const auto elementwise = [](std::string_view name, std::string_view file, FixedType type,
                              int n_inputs) {
    std::vector<FixedBinding> bindings = {in(n_inputs == 1 ? "input" : "a", type)};
    if (n_inputs == 2) bindings.push_back(in("b", type));
    bindings.push_back(out("output", type));
    return FixedKernel{.name = name,
                       .file = file,
                       .entry = type == kF32 ? "main" : "main_vec4",
                       .bindings = std::move(bindings),
                       .uniform = {"count"},
                       .validate = type == kF32 ? any_size : quads<0>,
                       .grid = type == kF32 ? flat<256, 0> : flat<1024, 0>};
  };
  std::vector<FixedKernel> all;
  for (const FixedType type : {kF32, kVec4F32}) {
    const bool scalar = type == kF32;
    const std::string_view entry = scalar ? "main" : "main_vec4";
    all.push_back({.name = "embedding",
                   .file = "ops/embedding/embedding.wgsl",
                   .entry = entry,
                   .bindings = {in("input_ids", kU32), in("weight", type), out("output", type)},
                   .uniform = {"seq_len", "hidden_size"},
                   .validate = scalar ? any_size : quads<1>,
                   .grid = scalar ? flat<256, 0, 1> : flat<1024, 0, 1>});
    all.push_back(norm("ops/norm/rmsnorm.wgsl", type, false));
    all.push_back(norm("ops/norm/layernorm.wgsl", type, true));
    all.push_back({.name = "rope",
                   .file = "ops/rope/rope.wgsl",
                   .entry = entry,
                   .bindings = {out("q", type), out("k", type)},
                   .uniform = {"seq_len", "num_q_heads", "num_kv_heads", "head_dim",
                               "rope_base_bits", "position_offset"},
                   .validate = scalar ? rope_sizes : rope_vec4_sizes,
                   .grid = scalar ? rope_grid<256> : rope_grid<1024>});
    all.push_back({.name = "softmax",
                   .file = "ops/softmax/softmax.wgsl",
                   .entry = entry,
                   .bindings = {in("input", type), out("output", type)},
                   .uniform = {"num_rows", "row_size"},
                   .validate = scalar ? any_size : quads<1>,
                   .grid = scalar ? flat<1, 0> : flat<4, 0>});
    all.push_back(elementwise("silu", "ops/elementwise/silu.wgsl", type, 1));
    all.push_back(elementwise("gelu", "ops/elementwise/gelu.wgsl", type, 1));
    all.push_back(elementwise("add", "ops/elementwise/add.wgsl", type, 2));
    all.push_back(elementwise("mul", "ops/elementwise/mul.wgsl", type, 2));
  }
  all.push_back({.name = "matmul",
                 .file = "ops/matmul/matmul.wgsl",
                 .entry = "main",
                 .bindings = {in("A"), in("B"), out("C")},
                 .uniform = {"M", "K", "N"},
                 .validate = any_size,
                 .grid = tiles<16, 0, 2>});
  all.push_back({.name = "matmul_int4",
                 .file = "ops/matmul/matmul_int4.wgsl",
                 .entry = "main",
                 .bindings = {in("A"), in("B_q", kU32), in("scales"), in("zeros"), out("C")},
                 .uniform = {"M", "K", "N", "group_size"},
                 .validate = int4_sizes,
                 .grid = tiles<16, 0, 2>});
  all.push_back(
      {.name = "attention",
       .file = "ops/attention/attention.wgsl",
       .entry = "main",
       .bindings = {in("Q"), in("K"), in("V"), out("output")},
       .uniform = {"T", "S", "num_q_heads", "num_kv_heads", "head_dim", "position_offset"},
       .validate = attention_sizes,
       .grid = attention_grid,
       .keeps_y = true});
  return all;
}

/// The linear layers: operands as vec4, dims = (M, N, K, 0).
void add_linear_kernels(std::vector<FixedKernel>& all) {
  for (const bool f16 : {false, true}) {
    const auto add = [&](std::string_view name, std::string_view entry,
                         std::vector<FixedBinding> bindings) {
      all.push_back({.name = name,
                     .file = f16 ? "ops/matmul/linear_w16.wgsl" : "ops/matmul/linear.wgsl",
                     .entry = entry,
                     .bindings = std::move(bindings),
                     .uniform = {"M", "N", "K", "0"},
                     .validate = quads<1, 2>,
                     .grid = tiles<64, 0, 1>,
                     .needs_f16 = f16});
    };
    const FixedBinding weight = in("W", f16 ? kVec4F16 : kVec4F32);
    add("linear", f16 ? "matmul_w16" : "matmul", {in("X", kVec4F32), weight, out("Y")});
    add("linear_residual", f16 ? "matmul_residual_w16" : "matmul_residual",
        {in("X", kVec4F32), weight, in("R"), out("Y")});
    add("linear_residual_swiglu_a",
        f16 ? "matmul_residual_swiglu_a_w16" : "matmul_residual_swiglu_a",
        {in("GATE", kVec4F32), in("UP", kVec4F32), weight, in("R"), out("Y")});
  }
}

void add_matvec_kernels(std::vector<FixedKernel>& all) {
  for (const bool subgroups : {true, false}) {
    all.push_back(
        {.name = subgroups ? "simd_matvec" : "simd_matvec_shared",
         .file = subgroups ? "ops/matmul/simd_matvec.wgsl" : "ops/matmul/simd_matvec_shared.wgsl",
         .entry = "main",
         .bindings = {in("W"), in("x"), out("y")},
         .uniform = {"rows", "cols"},
         .validate = any_size,
         .grid = flat<4, 0>,
         .needs_subgroups = subgroups});
  }
}

}  // namespace

std::string FixedKernel::label() const {
  return fmt::format("{}:{}", name, entry);
}

const std::vector<FixedKernel>& fixed_kernels() {
  static const std::vector<FixedKernel> all = [] {
    std::vector<FixedKernel> kernels = layer_kernels();
    add_linear_kernels(kernels);
    add_matvec_kernels(kernels);
    return kernels;
  }();
  return all;
}

const FixedKernel& fixed_kernel(std::string_view name, std::string_view entry) {
  for (const FixedKernel& kernel : fixed_kernels()) {
    if (kernel.name == name && kernel.entry == entry) return kernel;
  }
  fail(ErrorKind::kInvalidArgument, "fixed_kernel",
       "expected a kernel of the table, got {} with entry {}; see webgpu/fixed_kernels.cpp", name,
       entry);
}

Grid fixed_grid(const FixedKernel& kernel, Words uniform, int64_t max_grid) {
  if (uniform.size() != kernel.uniform.size()) {
    fail(ErrorKind::kInvalidArgument, kernel.label(), "expected {} uniform words, got {}",
         kernel.uniform.size(), uniform.size());
  }
  kernel.validate(kernel.label(), uniform);
  Grid grid = kernel.grid(uniform);
  if (grid.x <= max_grid && grid.y <= max_grid) return grid;
  const int64_t total = grid.x * grid.y;
  if (total > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorKind::kInvalidArgument, kernel.label(),
         "expected at most 2^32 - 1 workgroups, got {}; split the work", total);
  }
  // Kernels number their groups z, y, x, whatever the three are, unless y keeps its meaning. As few
  // groups too many as possible: dimensions nearly equal to what they have to make up.
  if (!kernel.keeps_y) {
    grid.y = ceil_div(total, max_grid);
    grid.z = ceil_div(grid.y, max_grid);
    grid.y = ceil_div(grid.y, grid.z);
    grid.x = ceil_div(total, grid.y * grid.z);
  } else {
    grid.z = ceil_div(grid.x, max_grid);
    grid.x = ceil_div(grid.x, grid.z);
  }
  if (grid.x > max_grid || grid.y > max_grid || grid.z > max_grid) {
    fail(ErrorKind::kInvalidArgument, kernel.label(),
         "expected a grid that fits {} workgroups in a dimension, got {}x{}x{}; split the work",
         max_grid, grid.x, grid.y, grid.z);
  }
  return grid;
}

}  // namespace tessera::webgpu
