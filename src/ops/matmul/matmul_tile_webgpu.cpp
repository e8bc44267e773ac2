#include "ops/matmul/matmul_tile_webgpu.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "ops/matmul/matmul_webgpu.hpp"
#include "ops/quantize/weight_webgpu.hpp"

namespace tessera {
namespace {

/// Params of matmul_tile.wgsl.
struct TileParams {
  uint32_t n_rows, n_columns, depth, n_row_tiles;
  RowsView y, x, up, w;
  uint32_t bias_first;
  RowsView residual;
  uint32_t live_first;
  uint32_t split_depth, split_stride;
};

/// Params of matmul_split_sum.wgsl.
struct SumParams {
  uint32_t n_rows, n_columns, n_splits, split_stride, row_stride;
  RowsView y;
  uint32_t bias_first;
  RowsView residual;
  uint32_t live_first;
};

/// What has to be a multiple of what, for the indices of the kernel to come out even.
void check(const webgpu::KernelConfig& source, const TileConfig& c) {
  const auto divides = [](int64_t part, int64_t whole) { return part > 0 && whole % part == 0; };
  // As matmul_tile.wgsl's indices of fours assume.
  const auto is_patch = [](int64_t patch, int64_t values) {
    return patch % 8 == 0 || values == 4 || (patch == 4 && values % 8 == 0);
  };
  const bool even = is_patch(c.patch_rows, c.rows) && is_patch(c.patch_columns, c.columns) &&
                    divides(32, c.tile_rows) && divides(32, c.tile_columns) && divides(4, c.step) &&
                    divides(4, c.rows) && divides(4, c.columns) &&
                    divides(c.rows * c.patch_rows, c.tile_rows) &&
                    divides(c.columns * c.patch_columns, c.tile_columns) && c.pipeline >= 0 &&
                    c.pipeline <= 2 && (c.split_groups == 0 || c.split_depth > 0);
  if (!even) {
    fail(ErrorKind::kInvalidArgument, std::string(kMatmulTile),
         "the configuration {{{}}} does not divide evenly", source.to_string());
  }
}

/// A weight in the units of matmul_tile.wgsl: fours of values, values, or bytes.
RowsView tile_weight_view(const Tensor& w, WeightOrder order, int64_t w_width,
                          const webgpu::Capabilities& capabilities) {
  if (w_width == 4 || order == WeightOrder::kInOut) return rows_view(w, capabilities, w_width);
  const WeightView view = weight_view(w, capabilities);
  return {view.first_byte, view.row_bytes};
}

/// The first configuration that this product is large enough for, else the last.
TileConfig choose(const std::vector<TileConfig>& configs, int64_t n_outputs, bool plain) {
  for (const TileConfig& config : configs) {
    if (config.plain_only != 0 && !plain) continue;
    if (n_outputs >= config.min_outputs) return config;
  }
  return configs.back();
}

webgpu::Kernel tile_kernel(const TileProduct& p, const TileConfig& c, int64_t x_width,
                           int64_t w_width, int64_t y_width, bool split) {
  const int64_t x_blocks = c.tile_rows * c.step / 16, w_blocks = c.tile_columns * c.step / 16;
  return {.file = "ops/matmul/matmul_tile.wgsl",
          .values = {{"X", std::string(name(p.x.dtype))},
                     {"WEIGHT", weight_value(p.w)},
                     {"IN_OUT", int64_t{p.order == WeightOrder::kInOut}},
                     {"GATE", int64_t{p.up.defined()}},
                     {"X_WIDTH", x_width},
                     {"W_WIDTH", w_width},
                     {"Y_WIDTH", y_width},
                     {"WHOLE", int64_t{x_width == 4 && p.x.dim(1) % c.step == 0 &&
                                       (w_width == 4 || is_block_format(p.w.dtype))}},
                     {"BIAS", int64_t{!split && p.bias.defined()}},
                     {"RESIDUAL", int64_t{!split && p.residual.defined()}},
                     {"LIVE", int64_t{p.live.defined()}},
                     {"SPLIT", int64_t{split}},
                     {"TILE_ROWS", c.tile_rows},
                     {"TILE_COLUMNS", c.tile_columns},
                     {"STEP", c.step},
                     {"ROWS", c.rows},
                     {"COLUMNS", c.columns},
                     {"PATCH_ROWS", c.patch_rows},
                     {"PATCH_COLUMNS", c.patch_columns},
                     {"PIPELINE", c.pipeline},
                     {"THREADS", c.threads()},
                     {"X_BLOCKS", x_blocks},
                     {"W_BLOCKS", w_blocks},
                     {"BLOCKS_PER_THREAD", ceil_div(x_blocks + w_blocks, c.threads())},
                     // Eight places of 16 bytes fill the banks of workgroup memory.
                     {"TURN", std::max<int64_t>(1, 32 / c.step)}}};
}

void record_sum(Queue& queue, std::string_view op, const TileProduct& p, const Tensor& partial,
                const SumParams& params, int64_t y_width) {
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(p.y), webgpu::read(partial)};
  for (const Tensor& optional : {p.bias, p.residual, p.live}) {
    if (optional.defined()) bindings.push_back(webgpu::read(optional));
  }
  bindings.push_back(webgpu::uniform());
  const int64_t n_fours = params.n_rows * ceil_div<int64_t>(params.n_columns, 4);
  webgpu::record(
      queue, op,
      {.file = "ops/matmul/matmul_split_sum.wgsl",
       .values = {{"WIDTH", y_width},
                  {"BIAS", int64_t{p.bias.defined()}},
                  {"RESIDUAL", int64_t{p.residual.defined()}},
                  {"LIVE", int64_t{p.live.defined()}}}},
      bindings, params,
      webgpu::fold(ceil_div(n_fours, kWorkgroupThreads), webgpu::capabilities_of(queue)));
}

/// A product whose w fits a binding.
void record_part(Queue& queue, std::string_view op, const TileProduct& p, const Tensor& scratch) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const int64_t n_rows = p.y.dim(0), n_columns = p.y.dim(1), depth = p.x.dim(1);
  const TileConfig config =
      choose(tile_configs(capabilities), n_rows * n_columns, !is_block_format(p.w.dtype));
  const int64_t n_tiles = config.n_tiles(n_rows, n_columns);
  const int64_t n_splits = scratch.defined() ? config.n_splits(n_tiles, depth) : 1;
  const bool split = n_splits > 1;
  const int64_t x_width = common_width({p.x, p.up});
  const int64_t w_width = is_block_format(p.w.dtype) ? 1 : common_width({p.w});
  const int64_t y_width = common_width({p.y, p.bias, p.residual});
  const int64_t padded_columns = round_up<int64_t>(n_columns, 4);
  const Tensor partial = split ? Tensor::dense(DType::kF32, {n_splits * n_rows, padded_columns},
                                               scratch.buffer, scratch.offset_bytes)
                               : p.y;
  const int64_t partial_width = split ? 4 : y_width;
  const RowsView y = rows_view(partial, capabilities, partial_width);
  const int64_t split_depth = round_up(ceil_div(depth, n_splits), config.step);
  const RowsView residual = rows_view(p.residual, capabilities, y_width);
  const uint32_t bias_first = rows_view(p.bias, capabilities, y_width).first;
  const uint32_t live_first = rows_view(p.live, capabilities).first;
  const TileParams params = {
      .n_rows = static_cast<uint32_t>(n_rows),
      .n_columns = static_cast<uint32_t>(n_columns),
      .depth = static_cast<uint32_t>(depth),
      .n_row_tiles = static_cast<uint32_t>(ceil_div(n_rows, config.tile_rows)),
      .y = y,
      .x = rows_view(p.x, capabilities, x_width),
      .up = rows_view(p.up, capabilities, x_width),
      .w = tile_weight_view(p.w, p.order, w_width, capabilities),
      .bias_first = bias_first,
      .residual = residual,
      .live_first = live_first,
      .split_depth = static_cast<uint32_t>(split_depth),
      .split_stride = static_cast<uint32_t>(n_rows * y.stride)};
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(partial), webgpu::read(p.x)};
  if (p.up.defined()) bindings.push_back(webgpu::read(p.up));
  bindings.push_back(webgpu::read(p.w));
  if (!split && p.bias.defined()) bindings.push_back(webgpu::read(p.bias));
  if (!split && p.residual.defined()) bindings.push_back(webgpu::read(p.residual));
  if (p.live.defined()) bindings.push_back(webgpu::read(p.live));
  bindings.push_back(webgpu::uniform());
  webgpu::Grid grid = webgpu::fold(n_tiles, capabilities);
  grid.z = ceil_div(depth, split_depth);
  webgpu::record(queue, op, tile_kernel(p, config, x_width, w_width, partial_width, split),
                 bindings, params, grid);
  if (!split) return;
  record_sum(queue, op, p, partial,
             {.n_rows = params.n_rows,
              .n_columns = params.n_columns,
              .n_splits = static_cast<uint32_t>(grid.z),
              .split_stride = params.split_stride,
              .row_stride = y.stride,
              .y = rows_view(p.y, capabilities, y_width),
              .bias_first = bias_first,
              .residual = residual,
              .live_first = live_first},
             y_width);
}

TileProduct product_of(const Matmul::Args& args) {
  return {.y = args.y,
          .x = args.x,
          .w = args.w,
          .bias = args.bias,
          .residual = args.residual,
          .live = args.live,
          .order = args.order};
}

/// Has no reduction order: in how many parts a sum is made depends on the number of rows.
void add_tile_split(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Matmul>({.name = "tile_split",
                     .supports =
                         [=](const Matmul::Args& args, const Caps&) {
                           const TileProduct product = product_of(args);
                           return is_for_tiles(product, capabilities) &&
                                  split_scratch_bytes(product, capabilities) > 0;
                         },
                     .scratch_bytes =
                         [=](const Matmul::Args& args) {
                           return split_scratch_bytes(product_of(args), capabilities);
                         },
                     .run =
                         [](Queue& queue, const Matmul::Args& args, const Tensor& scratch) {
                           record_tiles(queue, Matmul::kName, product_of(args), scratch);
                         },
                     .traits = {.isa = "core", .tuned = kMatmulTile}});
}

}  // namespace

TileConfig::TileConfig(const webgpu::KernelConfig& config)
    : tile_rows(config["tile_rows"]),
      tile_columns(config["tile_columns"]),
      step(config["step"]),
      rows(config["rows"]),
      columns(config["columns"]),
      patch_rows(config["patch_rows"]),
      patch_columns(config["patch_columns"]),
      pipeline(config["pipeline"]),
      min_outputs(config["min_outputs"]),
      plain_only(config["plain_only"]),
      split_groups(config["split_groups"]),
      split_depth(config["split_depth"]) {
  check(config, *this);
}

int64_t TileConfig::n_tiles(int64_t n_rows, int64_t n_columns) const {
  return ceil_div(n_rows, tile_rows) * ceil_div(n_columns, tile_columns);
}

int64_t TileConfig::n_splits(int64_t tiles, int64_t depth) const {
  if (split_groups == 0 || tiles == 0) return 1;
  return std::max<int64_t>(1, std::min(split_groups / tiles, depth / split_depth));
}

std::vector<TileConfig> tile_configs(const webgpu::Capabilities& capabilities) {
  std::vector<TileConfig> configs;
  for (const webgpu::Tuning* tuning : {capabilities.tuning, &webgpu::tunings().back()}) {
    if (tuning == nullptr) continue;  // capabilities of no device (the support table)
    for (const webgpu::KernelConfig& config : tuning->of(kMatmulTile)) {
      const TileConfig tile(config);
      if (tile.runs_on(capabilities)) configs.push_back(tile);
    }
    if (!configs.empty()) break;
  }
  return configs;
}

bool is_for_tiles(const TileProduct& p, const webgpu::Capabilities& capabilities) {
  const bool x_fits =
      p.x.dtype == DType::kF32 || p.x.dtype == DType::kF16 || p.x.dtype == DType::kBF16;
  const bool w_fits = p.order == WeightOrder::kOutIn
                          ? ops::is_weight_type(p.w.dtype) && fits_sliced(p.w, capabilities)
                          : !is_block_format(p.w.dtype) && fits_binding(p.w, capabilities);
  return x_fits && w_fits && fits_binding(p.y, capabilities) && fits_binding(p.x, capabilities) &&
         fits_binding(p.up, capabilities) && fits_binding(p.residual, capabilities);
}

int64_t split_scratch_bytes(const TileProduct& p, const webgpu::Capabilities& capabilities) {
  int64_t bytes = 0;
  for (const TileConfig& config : tile_configs(capabilities)) {
    if (config.n_splits(config.n_tiles(1, p.y.dim(1)), p.x.dim(1)) < 2) continue;
    bytes = std::max(bytes, 4 * config.split_groups * config.tile_rows * config.tile_columns);
  }
  return bytes;
}

void record_tiles(Queue& queue, std::string_view op, const TileProduct& p, const Tensor& scratch) {
  if (p.order == WeightOrder::kInOut) {
    record_part(queue, op, p, scratch);
    return;
  }
  for (const RowSlice& slice : row_slices(p.w, webgpu::capabilities_of(queue))) {
    TileProduct part = p;
    part.y = columns_of(p.y, slice);
    part.w = p.w.slice(slice.begin, slice.count);
    part.bias = columns_of(p.bias, slice);
    part.residual = columns_of(p.residual, slice);
    record_part(queue, op, part, scratch);
  }
}

void add_matmul_tile_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  const std::vector<TileConfig> configs = tile_configs(capabilities);
  const bool splits = std::any_of(configs.begin(), configs.end(),
                                  [](const TileConfig& c) { return c.split_groups > 0; });
  if (splits) add_tile_split(table, capabilities);
  table.add<Matmul>(
      {.name = "tile",
       .supports = [=](const Matmul::Args& args,
                       const Caps&) { return is_for_tiles(product_of(args), capabilities); },
       .run = [](Queue& queue, const Matmul::Args& args,
                 const Tensor&) { record_tiles(queue, Matmul::kName, product_of(args)); },
       .traits = {.isa = "core", .reduction_order = "webgpu.chain", .tuned = kMatmulTile}});
}

}  // namespace tessera
