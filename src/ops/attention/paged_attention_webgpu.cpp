#include "device/kernel_table.hpp"
#include "ops/attention/paged_attention.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

constexpr int64_t kMaxHeadDim = 256;  // of paged_attention_head.wgsl

/// Where [T, H, d] starts, and how far tokens and heads are apart, in values.
struct HeadsView {
  uint32_t first, token_stride, head_stride;
};

/// Params of paged_attention_head.wgsl.
struct Params {
  uint32_t n_tokens, n_heads, n_kv_heads, head_dim, page_tokens, window;
  float scale, soft_cap;
  HeadsView y, q;
  uint32_t k_first, v_first, positions_first, sequences_first;
  RowsView tables;
  uint32_t live_first;
};

HeadsView heads_view(const Tensor& tensor, const webgpu::Capabilities& capabilities) {
  const int64_t value_bytes = info(tensor.dtype).block_bytes;
  return {rows_view(tensor, capabilities).first,
          static_cast<uint32_t>(tensor.stride_bytes[0] / value_bytes),
          static_cast<uint32_t>(tensor.stride_bytes[1] / value_bytes)};
}

void record_heads(Queue& queue, const PagedAttention::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  std::vector<webgpu::Binding> bindings = {
      webgpu::read_write(args.y),     webgpu::read(args.q),         webgpu::read(args.k_pages),
      webgpu::read(args.v_pages),     webgpu::read(args.positions), webgpu::read(args.sequences),
      webgpu::read(args.block_tables)};
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const int64_t n_tokens = args.q.dim(0), n_heads = args.q.dim(1);
  const Params params = {.n_tokens = static_cast<uint32_t>(n_tokens),
                         .n_heads = static_cast<uint32_t>(n_heads),
                         .n_kv_heads = static_cast<uint32_t>(args.k_pages.dim(1)),
                         .head_dim = static_cast<uint32_t>(args.q.dim(2)),
                         .page_tokens = static_cast<uint32_t>(args.k_pages.dim(2)),
                         .window = static_cast<uint32_t>(args.window),
                         .scale = args.scale,
                         .soft_cap = args.soft_cap,
                         .y = heads_view(args.y, capabilities),
                         .q = heads_view(args.q, capabilities),
                         .k_first = rows_view(args.k_pages, capabilities).first,
                         .v_first = rows_view(args.v_pages, capabilities).first,
                         .positions_first = rows_view(args.positions, capabilities).first,
                         .sequences_first = rows_view(args.sequences, capabilities).first,
                         .tables = rows_view(args.block_tables, capabilities),
                         .live_first = rows_view(args.live, capabilities).first};
  webgpu::record(queue, PagedAttention::kName,
                 {.file = "ops/attention/paged_attention_head.wgsl",
                  .values = {{"PAGES", std::string(name(args.k_pages.dtype))},
                             {"CAP", int64_t{args.soft_cap > 0}},
                             {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params, webgpu::fold(n_tokens * n_heads, capabilities));
}

}  // namespace

void add_paged_attention_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<PagedAttention>({
      .name = "head_per_workgroup",
      .supports =
          [=](const PagedAttention::Args& args, const Caps&) {
            return args.q.dim(2) <= kMaxHeadDim && args.k_pages.is_dense() &&
                   args.v_pages.is_dense() && fits_binding(args.q, capabilities) &&
                   fits_binding(args.y, capabilities) && fits_binding(args.k_pages, capabilities) &&
                   fits_binding(args.v_pages, capabilities);
          },
      .run = [](Queue& queue, const PagedAttention::Args& args,
                const Tensor&) { record_heads(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu.keys64"},
  });
}

}  // namespace tessera
