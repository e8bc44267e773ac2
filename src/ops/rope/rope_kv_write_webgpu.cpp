#include <algorithm>

#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/rope/heads_webgpu.hpp"
#include "ops/rope/rope_kv_write.hpp"

namespace tessera {
namespace {

/// Params of rope_kv_write_rows.wgsl.
struct Params {
  uint32_t n_tokens, head_dim, n_pairs, n_heads, n_kv_heads;
  HeadsView q, k, v;
  uint32_t k_pages_first, v_pages_first, page_tokens;
  RowsView rotation;
  uint32_t positions_first, sequences_first;
  RowsView tables;
  uint32_t live_first;
};

/// What one dispatch does.
struct Parts {
  bool q = false, k = false, v = false;
};

std::string pages_value(const Tensor& pages) {
  if (pages.dtype == DType::kF32) return "f32";
  const bool whole_words = pages.dim(3) % 2 == 0 && pages.offset_bytes % 4 == 0;
  return whole_words ? "f16_pairs" : "f16";
}

/// Rotation, positions, sequences, block tables and live as the one tensor of words that covers
/// them; none where they do not lie in one buffer.
Tensor state_of(const RopeKvWrite::Args& args) {
  Tensor first = args.rotation;
  int64_t begin = first.offset_bytes, end = begin + first.span_bytes();
  for (const Tensor* field : {&args.positions, &args.sequences, &args.block_tables, &args.live}) {
    if (!field->defined()) continue;
    if (first.buffer == nullptr || field->buffer != first.buffer) return {};
    begin = std::min(begin, field->offset_bytes);
    end = std::max(end, field->offset_bytes + field->span_bytes());
  }
  return Tensor::dense(DType::kU32, {ceil_div<int64_t>(end - begin, 4)}, first.buffer, begin);
}

/// Where a field starts in its binding, in words: its own, or the state's.
RowsView field_view(const Tensor& field, const Tensor& state,
                    const webgpu::Capabilities& capabilities) {
  RowsView view = rows_view(field, capabilities);
  if (!state.defined() || !field.defined()) return view;
  const int64_t words = (field.offset_bytes - state.offset_bytes) / 4;
  view.first = static_cast<uint32_t>(webgpu::first_element(state, capabilities) + words);
  return view;
}

/// Storage buffers of a dispatch that does everything.
int n_bindings(const RopeKvWrite::Args& args, const webgpu::Capabilities& capabilities) {
  const Tensor state = state_of(args);
  constexpr int kOperands = 5;  // q, k, v and the pages of both
  if (state.defined() && fits_binding(state, capabilities)) return kOperands + 1;
  return kOperands + 4 + (args.live.defined() ? 1 : 0);
}

void record_parts(Queue& queue, const RopeKvWrite::Args& args, Parts parts) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  Tensor state = state_of(args);
  if (!fits_binding(state, capabilities)) state = {};
  std::vector<webgpu::Binding> bindings;
  if (parts.q) bindings.push_back(webgpu::read_write(args.q));
  if (parts.k) {
    bindings.push_back(webgpu::read(args.k));
    bindings.push_back(webgpu::read_write(args.k_pages));
  }
  if (parts.v) {
    bindings.push_back(webgpu::read(args.v));
    bindings.push_back(webgpu::read_write(args.v_pages));
  }
  if (state.defined()) {
    bindings.push_back(webgpu::read(state));
  } else {
    for (const Tensor* field :
         {&args.rotation, &args.positions, &args.sequences, &args.block_tables, &args.live}) {
      if (field->defined()) bindings.push_back(webgpu::read(*field));
    }
  }
  bindings.push_back(webgpu::uniform());
  const int64_t n_tokens = args.q.dim(0), n_pairs = args.rotation.dim(1);
  const int64_t n_heads = args.q.dim(1), n_kv_heads = args.k.dim(1), head_dim = args.q.dim(2);
  const auto first_of = [&](const Tensor& field) {
    return field_view(field, state, capabilities).first;
  };
  const Params params = {.n_tokens = static_cast<uint32_t>(n_tokens),
                         .head_dim = static_cast<uint32_t>(head_dim),
                         .n_pairs = static_cast<uint32_t>(n_pairs),
                         .n_heads = static_cast<uint32_t>(n_heads),
                         .n_kv_heads = static_cast<uint32_t>(n_kv_heads),
                         .q = heads_view(args.q, capabilities),
                         .k = heads_view(args.k, capabilities),
                         .v = heads_view(args.v, capabilities),
                         .k_pages_first = rows_view(args.k_pages, capabilities).first,
                         .v_pages_first = rows_view(args.v_pages, capabilities).first,
                         .page_tokens = static_cast<uint32_t>(args.k_pages.dim(2)),
                         .rotation = field_view(args.rotation, state, capabilities),
                         .positions_first = first_of(args.positions),
                         .sequences_first = first_of(args.sequences),
                         .tables = field_view(args.block_tables, state, capabilities),
                         .live_first = first_of(args.live)};
  const int64_t kv_pairs = n_kv_heads * ceil_div<int64_t>(head_dim, 2);
  const int64_t token_pairs =
      (parts.q ? n_heads * n_pairs : 0) + (parts.k ? kv_pairs : 0) + (parts.v ? kv_pairs : 0);
  webgpu::record(queue, RopeKvWrite::kName,
                 {.file = "ops/rope/rope_kv_write_rows.wgsl",
                  .values = {{"Q", int64_t{parts.q}},
                             {"K", int64_t{parts.k}},
                             {"V", int64_t{parts.v}},
                             {"STATE", int64_t{state.defined()}},
                             {"HALF_SPLIT", int64_t{args.pairing == RopePairing::kHalfSplit}},
                             {"K_PAGES", pages_value(args.k_pages)},
                             {"V_PAGES", pages_value(args.v_pages)},
                             {"LIVE", int64_t{args.live.defined()}}}},
                 bindings, params,
                 webgpu::fold(ceil_div(n_tokens * token_pairs, kWorkgroupThreads), capabilities));
}

/// One dispatch, or one each for q, k and v where all of them bind more than the device does.
void record(Queue& queue, const RopeKvWrite::Args& args) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  if (n_bindings(args, capabilities) <= capabilities.max_storage_buffers) {
    record_parts(queue, args, {.q = true, .k = true, .v = true});
    return;
  }
  record_parts(queue, args, {.q = true});
  record_parts(queue, args, {.k = true});
  record_parts(queue, args, {.v = true});
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
      .run = [](Queue& queue, const RopeKvWrite::Args& args,
                const Tensor&) { record(queue, args); },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
