#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/rope/rope_kv_write.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

/// Params of rope_kv_write_part.wgsl.
struct Params {
  uint32_t n_tokens, n_heads, head_dim, n_pairs;
  uint32_t source_first, source_token_stride, source_head_stride;
  RowsView rotation;
  uint32_t positions_first, sequences_first;
  RowsView tables;
  uint32_t pages_first, page_tokens, live_first;
};

enum class Part { kQ, kK, kV };

std::string pages_value(const Tensor& pages) {
  if (pages.dtype == DType::kF32) return "f32";
  const bool whole_words = pages.dim(3) % 2 == 0 && pages.offset_bytes % 4 == 0;
  return whole_words ? "f16_pairs" : "f16";
}

/// One dispatch each for q, k and v: together they need more than the eight storage buffers that
/// every device has.
void record_part(Queue& queue, const RopeKvWrite::Args& args, Part part) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const bool is_q = part == Part::kQ, is_k = part == Part::kK;
  const Tensor& source = is_q ? args.q : is_k ? args.k : args.v;
  const Tensor& pages = is_k ? args.k_pages : args.v_pages;
  std::vector<webgpu::Binding> bindings = {is_q ? webgpu::read_write(source) : webgpu::read(source),
                                           webgpu::read(args.sequences)};
  if (is_q || is_k) bindings.push_back(webgpu::read(args.rotation));
  if (!is_q) {
    bindings.insert(bindings.end(), {webgpu::read_write(pages), webgpu::read(args.positions),
                                     webgpu::read(args.block_tables)});
  }
  if (args.live.defined()) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());

  const int64_t value_bytes = info(source.dtype).block_bytes;
  const int64_t n_tokens = source.dim(0), n_heads = source.dim(1), head_dim = source.dim(2);
  const int64_t n_rotated = args.rotation.dim(1);
  const Params params = {
      .n_tokens = static_cast<uint32_t>(n_tokens),
      .n_heads = static_cast<uint32_t>(n_heads),
      .head_dim = static_cast<uint32_t>(head_dim),
      .n_pairs = static_cast<uint32_t>(n_rotated),
      .source_first = rows_view(source, capabilities).first,
      .source_token_stride = static_cast<uint32_t>(source.stride_bytes[0] / value_bytes),
      .source_head_stride = static_cast<uint32_t>(source.stride_bytes[1] / value_bytes),
      .rotation = rows_view(args.rotation, capabilities),
      .positions_first = rows_view(args.positions, capabilities).first,
      .sequences_first = rows_view(args.sequences, capabilities).first,
      .tables = rows_view(args.block_tables, capabilities),
      .pages_first = rows_view(pages, capabilities).first,
      .page_tokens = static_cast<uint32_t>(pages.dim(2)),
      .live_first = rows_view(args.live, capabilities).first};
  const int64_t n_pairs = n_tokens * n_heads * (is_q ? n_rotated : ceil_div<int64_t>(head_dim, 2));
  webgpu::record(queue, RopeKvWrite::kName,
                 {.file = "ops/rope/rope_kv_write_part.wgsl",
                  .values = {{"PART", std::string(is_q   ? "q"
                                                  : is_k ? "k"
                                                         : "v")},
                             {"HALF_SPLIT", int64_t{args.pairing == RopePairing::kHalfSplit}},
                             {"PAGES", pages_value(pages)},
                             {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params,
                 webgpu::fold(ceil_div(n_pairs, kWorkgroupThreads), capabilities));
}

}  // namespace

void add_rope_kv_write_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<RopeKvWrite>({
      .name = "thread_per_pair",
      .supports =
          [=](const RopeKvWrite::Args& args, const Caps&) {
            return args.k_pages.is_dense() && args.v_pages.is_dense() &&
                   fits_binding(args.q, capabilities) && fits_binding(args.k_pages, capabilities) &&
                   fits_binding(args.v_pages, capabilities);
          },
      .run =
          [](Queue& queue, const RopeKvWrite::Args& args, const Tensor&) {
            for (const Part part : {Part::kQ, Part::kK, Part::kV}) record_part(queue, args, part);
          },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
