#include "ops/matmul/few_rows_webgpu.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/checked.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {
namespace {

/// How work is laid over threads. Which threads sum a value, and in which order, must not depend on
/// the number of rows.
struct Teams {
  int64_t threads;  ///< of a workgroup
  int64_t team;     ///< threads that share a column
  int64_t columns;  ///< of a team
  int64_t unroll;   ///< steps whose loads are on their way together
};

/// Partial sums in workgroup memory, of which every implementation has 16 KiB. The most that a
/// single column needs are 8 rows * (gate, up, squares) * 128 threads = 3072 without subgroups, and
/// half of it with subgroups of four threads and teams of 256.
constexpr int64_t kMaxParts = 4096;

/// Registers of eight weights on their way, about.
int64_t registers_of(DType weight) {
  return weight == DType::kF32 ? 8 : is_block_format(weight) ? 2 : 4;
}

/// A dispatch is fastest when all loads of a thread are on their way at once, and with no more
/// workgroups than that takes. Measured on an H200 (4.2 TB/s when copying; a dispatch that does
/// nothing takes 2.2 us), one row of x: 151936x896 in f32 133 us, f16 65 us (4.17 TB/s), q4_1 42
/// us; 1536x576 in f16 and q4_1 3.6 us, 576x576 3.4 us.
Teams choose_teams(const FewRows& rows, int64_t n_columns, bool subgroups) {
  const int64_t n_rows = rows.x.dim(0), n_eights = ceil_div<int64_t>(rows.x.dim(1), 8);
  const int64_t n_sides = rows.gate ? 2 : 1;
  Teams teams = {.threads = 128, .team = 16, .columns = 1, .unroll = 1};
  // Few columns: more threads for each, as long as all have an eight.
  const int64_t max_team = subgroups ? 256 : 128;
  while (teams.team < max_team && teams.team < n_eights && n_columns * teams.team < 1 << 19) {
    teams.team *= 2;
  }
  teams.threads = std::max(teams.threads, teams.team);
  // More columns: several for each team, which then share the values of x.
  const int64_t parts_of_sum = teams.threads / (subgroups ? 4 : 1);
  const auto fits = [&](int64_t columns) {
    const int64_t n_sums = n_rows * (columns * n_sides + (rows.norm_weight.defined() ? 1 : 0));
    return n_sums * parts_of_sum <= kMaxParts && n_rows * columns <= teams.team;
  };
  const int64_t n_threads = n_columns * teams.team;
  if (n_threads >= (rows.gate ? 1 << 19 : 1 << 16) && fits(2)) teams.columns = 2;
  if (n_threads >= 1 << 19 && !rows.gate && fits(4)) teams.columns = 4;
  const int64_t n_registers = registers_of(rows.w[0].dtype) * teams.columns * n_sides;
  teams.unroll = std::clamp<int64_t>(std::min(48 / n_registers, 8 / n_rows), 1, 4);
  return teams;
}

bool is_plain(DType dtype) {
  return !is_block_format(dtype);
}

/// Whether rows of the weight start where few_rows.wgsl with ALIGNED expects them.
bool is_aligned(const Tensor& weight) {
  const int64_t step = is_plain(weight.dtype) ? 16 : 4;
  const bool whole_blocks =
      is_plain(weight.dtype) ? weight.dim(1) % 8 == 0 : info(weight.dtype).block_bytes % 4 == 0;
  return whole_blocks && weight.offset_bytes % step == 0 && weight.stride_bytes[0] % step == 0;
}

std::vector<webgpu::Binding> bindings_of(const FewRows& rows) {
  std::vector<webgpu::Binding> bindings;
  const auto read = [&](const Tensor& tensor) {
    if (tensor.defined()) bindings.push_back(webgpu::read(tensor));
  };
  for (const Tensor& y : rows.y) {
    if (y.defined()) bindings.push_back(webgpu::read_write(y));
  }
  read(rows.x);
  for (const Tensor& w : rows.w) read(w);
  read(rows.norm_weight);
  for (const Tensor& bias : rows.bias) read(bias);
  read(rows.residual);
  read(rows.live);
  bindings.push_back(webgpu::uniform());
  return bindings;
}

/// The part of a single weight's work that belongs to some of its rows.
FewRows sliced(const FewRows& rows, const RowSlice& slice) {
  FewRows part = rows;
  part.w[0] = rows.w[0].slice(slice.begin, slice.count);
  part.y[0] = columns_of(rows.y[0], slice);
  part.bias[0] = columns_of(rows.bias[0], slice);
  part.residual = columns_of(rows.residual, slice);
  return part;
}

int n_storage_buffers(const FewRows& rows) {
  return static_cast<int>(bindings_of(rows).size()) - 1;
}

/// One dispatch, or several where the weights have different types, are too large for a binding, or
/// where they need more bindings together than a kernel may have.
std::vector<FewRows> dispatches_of(const FewRows& rows, const webgpu::Capabilities& capabilities) {
  if (rows.gate || rows.n_weights() == 1) return {rows};
  std::vector<FewRows> parts;
  for (size_t i = 0; i < static_cast<size_t>(rows.n_weights()); ++i) {
    const auto add_to = [&](FewRows part) {
      const auto at = static_cast<size_t>(part.n_weights());
      part.y[at] = rows.y[i];
      part.w[at] = rows.w[i];
      part.bias[at] = rows.bias[i];
      return part;
    };
    const bool fits = fits_binding(rows.w[i], capabilities);
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const FewRows& part) {
      return fits && fits_binding(part.w[0], capabilities) && part.w[0].dtype == rows.w[i].dtype &&
             part.bias[0].defined() == rows.bias[i].defined() &&
             n_storage_buffers(add_to(part)) <= capabilities.max_storage_buffers;
    });
    if (found != parts.end()) {
      *found = add_to(*found);
      continue;
    }
    FewRows empty = rows;
    empty.y = empty.w = empty.bias = {};
    parts.push_back(add_to(empty));
  }
  return parts;
}

/// One dispatch. `n_columns` counts those of the whole weights, of which `rows` may have a slice:
/// the order of sums follows from it.
void record_dispatch(Queue& queue, std::string_view label, const FewRows& rows, int64_t n_columns,
                     bool subgroups) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t n_rows = rows.x.dim(0), depth = rows.x.dim(1);
  const int n_weights = rows.n_weights(), n_outputs = rows.n_outputs();
  const bool norm = rows.norm_weight.defined();
  const int64_t width = depth % 8 == 0 ? common_width({rows.x, rows.norm_weight}) : 1;
  bool aligned = true;
  for (int i = 0; i < n_weights; ++i) {
    aligned = aligned && is_aligned(rows.w[static_cast<size_t>(i)]);
  }
  const Teams teams = choose_teams(rows, n_columns, subgroups);
  const int64_t n_eights = ceil_div<int64_t>(depth, 8), chunk = teams.unroll * teams.team;
  const int64_t n_chunks = n_eights / chunk, n_rest = n_eights % chunk;

  // Params of few_rows.wgsl.
  std::vector<uint32_t> params = {static_cast<uint32_t>(depth)};
  const RowsView x = rows_view(rows.x, capabilities, width);
  const RowsView residual = rows_view(rows.residual, capabilities);
  params.insert(params.end(),
                {x.first, x.stride, rows_view(rows.norm_weight, capabilities, width).first,
                 std::bit_cast<uint32_t>(rows.eps), residual.first, residual.stride,
                 rows_view(rows.live, capabilities).first, static_cast<uint32_t>(n_chunks)});
  int64_t n_groups = 0;
  for (size_t i = 0; i < static_cast<size_t>(n_weights); ++i) {
    const bool is_output = i < static_cast<size_t>(n_outputs);
    if (is_output) {
      n_groups += ceil_div(rows.w[i].dim(0), teams.threads / teams.team * teams.columns);
    }
    const RowsView y = rows_view(rows.y[i], capabilities);
    const WeightView w = weight_view(rows.w[i], capabilities);
    params.insert(
        params.end(),
        {static_cast<uint32_t>(n_groups), static_cast<uint32_t>(rows.w[i].dim(0)), y.first,
         y.stride, w.first_byte, w.row_bytes, rows_view(rows.bias[i], capabilities).first});
  }
  int64_t log_team = 0;
  while ((int64_t{1} << log_team) < teams.team) ++log_team;
  const webgpu::Kernel kernel = {.file = "ops/matmul/few_rows.wgsl",
                                 .values = {{"WEIGHT", weight_value(rows.w[0])},
                                            {"ALIGNED", int64_t{aligned}},
                                            {"PARTS", int64_t{n_weights}},
                                            {"OUTPUTS", int64_t{n_outputs}},
                                            {"GATE", int64_t{rows.gate}},
                                            {"NORM", int64_t{norm}},
                                            {"ROWS", n_rows},
                                            {"WIDTH", width},
                                            {"THREADS", teams.threads},
                                            {"TEAM", teams.team},
                                            {"LOG_TEAM", log_team},
                                            {"COLUMNS", teams.columns},
                                            {"UNROLL", teams.unroll},
                                            {"FULL", int64_t{n_chunks > 0}},
                                            {"TAIL", ceil_div(n_rest, teams.team)},
                                            {"GUARD", int64_t{n_rest % teams.team != 0}},
                                            {"SUBGROUPS", int64_t{subgroups}},
                                            {"BIAS", int64_t{rows.bias[0].defined()}},
                                            {"RESIDUAL", int64_t{rows.residual.defined()}},
                                            {"LIVE", int64_t{rows.live.defined()}}}};
  const std::vector<webgpu::Binding> bindings = bindings_of(rows);
  webgpu::record(queue, label, kernel, std::span(bindings), std::as_bytes(std::span(params)),
                 webgpu::fold(n_groups, capabilities));
}

}  // namespace

int FewRows::n_weights() const {
  return static_cast<int>(
      std::count_if(w.begin(), w.end(), [](const Tensor& tensor) { return tensor.defined(); }));
}

bool supports_few_rows(const FewRows& rows, const webgpu::Capabilities& capabilities) {
  const int n_weights = rows.n_weights();
  if (n_weights == 0 || rows.x.dtype != DType::kF32) return false;
  if (rows.x.dim(0) < 1 || rows.x.dim(0) > kMaxFewRows) return false;
  if (rows.gate && rows.w[0].dtype != rows.w[1].dtype) return false;
  for (size_t i = 0; i < static_cast<size_t>(n_weights); ++i) {
    if (!ops::is_weight_type(rows.w[i].dtype) || !fits_binding(rows.y[i], capabilities)) {
      return false;
    }
  }
  for (const FewRows& part : dispatches_of(rows, capabilities)) {
    if (n_storage_buffers(part) > capabilities.max_storage_buffers) return false;
    for (const Tensor& w : part.w) {
      const bool fits =
          part.n_weights() == 1 ? fits_sliced(w, capabilities) : fits_binding(w, capabilities);
      if (w.defined() && !fits) return false;
    }
  }
  return fits_binding(rows.x, capabilities) && fits_binding(rows.residual, capabilities);
}

void record_few_rows(Queue& queue, std::string_view label, const FewRows& rows, bool subgroups) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  for (const FewRows& part : dispatches_of(rows, capabilities)) {
    int64_t n_columns = 0;
    for (const Tensor& w : part.w) n_columns += w.defined() ? w.dim(0) : 0;
    if (part.n_weights() > 1) {
      record_dispatch(queue, label, part, n_columns, subgroups);
      continue;
    }
    for (const RowSlice& slice : row_slices(part.w[0], capabilities)) {
      record_dispatch(queue, label, sliced(part, slice), n_columns, subgroups);
    }
  }
}

}  // namespace tessera
