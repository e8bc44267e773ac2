#include "ops/rope/rope.hpp"

#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/rope/heads_webgpu.hpp"

namespace tessera {
namespace {

/// Params of rope_rows.wgsl.
struct Params {
  uint32_t n_tokens, n_heads, n_kv_heads, n_units;
  HeadsView q, k;
  RowsView rotation;
  uint32_t live_first;
};

/// Whether a thread may rotate vec4s: everything starts at multiples of four values.
bool is_wide(const Rope::Args& args) {
  constexpr int64_t kVec4Bytes = 16;
  for (const Tensor* tensor : {&args.q, &args.k, &args.rotation}) {
    if (!tensor->defined()) continue;
    if (tensor->offset_bytes % kVec4Bytes != 0 || tensor->stride_bytes[0] % kVec4Bytes != 0) {
      return false;
    }
    if (tensor != &args.rotation && tensor->stride_bytes[1] % kVec4Bytes != 0) return false;
  }
  return args.rotation.dim(1) % (args.pairing == RopePairing::kHalfSplit ? 4 : 2) == 0;
}

void record_rows(Queue& queue, const Rope::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const bool half_split = args.pairing == RopePairing::kHalfSplit;
  const bool has_k = args.k.defined(), has_live = args.live.defined();
  const int64_t pairs = is_wide(args) ? (half_split ? 4 : 2) : 1;
  const int64_t values = pairs == 1 ? 1 : 4;  // of an element of q and k, and of rotation
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(args.q), webgpu::read(args.rotation)};
  if (has_k) bindings.push_back(webgpu::read_write(args.k));
  if (has_live) bindings.push_back(webgpu::read(args.live));
  bindings.push_back(webgpu::uniform());
  const int64_t n_tokens = args.q.dim(0), n_kv_heads = has_k ? args.k.dim(1) : 0;
  const int64_t n_units = args.rotation.dim(1) / pairs;
  const Params params = {.n_tokens = static_cast<uint32_t>(n_tokens),
                         .n_heads = static_cast<uint32_t>(args.q.dim(1)),
                         .n_kv_heads = static_cast<uint32_t>(n_kv_heads),
                         .n_units = static_cast<uint32_t>(n_units),
                         .q = heads_view(args.q, capabilities, values),
                         .k = heads_view(args.k, capabilities, values),
                         .rotation = rows_view(args.rotation, capabilities, values),
                         .live_first = rows_view(args.live, capabilities).first};
  const int64_t n_threads = n_tokens * (args.q.dim(1) + n_kv_heads) * n_units;
  webgpu::record(queue, Rope::kName,
                 {.file = "ops/rope/rope_rows.wgsl",
                  .values = {{"HALF_SPLIT", int64_t{half_split}},
                             {"HAS_K", int64_t{has_k}},
                             {"WIDTH", pairs},
                             {"LIVE", int64_t{has_live}}}},
                 bindings, params,
                 webgpu::fold(ceil_div(n_threads, kWorkgroupThreads), capabilities));
}

}  // namespace

void add_rope_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Rope>({
      .name = "thread_per_pairs",
      .supports =
          [=](const Rope::Args& args, const Caps&) {
            return fits_binding(args.q, capabilities) && fits_binding(args.k, capabilities) &&
                   fits_binding(args.rotation, capabilities);
          },
      .run = [](Queue& queue, const Rope::Args& args, const Tensor&) { record_rows(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
