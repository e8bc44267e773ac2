#include "base/checked.hpp"
#include "device/kernel_table.hpp"
#include "ops/sample/argmax.hpp"
#include "ops/webgpu_row.hpp"

namespace tessera {
namespace {

/// Values of a workgroup where a row is cut into chunks: eight for each thread. A vocabulary of
/// 151,936 tokens then keeps 75 workgroups busy.
constexpr int64_t kChunk = 2048;
constexpr int64_t kCandidateBytes = 8;  ///< of argmax_rows.wgsl

/// Params of argmax_rows.wgsl.
struct Params {
  uint32_t n_rows, n_columns, chunk, n_chunks, ids_first;
  RowsView x;
  uint32_t live_first;
};

/// One dispatch: from values or candidates to ids or candidates, by type of the tensors.
void record_chunks(Queue& queue, const Tensor& to, const Tensor& from, const Tensor& live,
                   int64_t chunk) {
  const webgpu::Capabilities& capabilities = webgpu::capabilities_of(queue);
  const bool from_values = from.dtype == DType::kF32, to_ids = to.dtype == DType::kU32;
  std::vector<webgpu::Binding> bindings = {webgpu::read_write(to), webgpu::read(from)};
  if (live.defined()) bindings.push_back(webgpu::read(live));
  bindings.push_back(webgpu::uniform());
  const int64_t n_rows = from.dim(0);
  const int64_t n_columns = from_values ? from.dim(1) : from.dim(1) / kCandidateBytes;
  const int64_t n_chunks = ceil_div(n_columns, chunk);
  RowsView x = rows_view(from, capabilities);
  if (!from_values) {  // bytes until here
    x.first /= static_cast<uint32_t>(kCandidateBytes);
    x.stride /= static_cast<uint32_t>(kCandidateBytes);
  }
  const Params params = {.n_rows = static_cast<uint32_t>(n_rows),
                         .n_columns = static_cast<uint32_t>(n_columns),
                         .chunk = static_cast<uint32_t>(chunk),
                         .n_chunks = static_cast<uint32_t>(n_chunks),
                         .ids_first = to_ids ? rows_view(to, capabilities).first : 0,
                         .x = x,
                         .live_first = rows_view(live, capabilities).first};
  webgpu::record(queue, Argmax::kName,
                 {.file = "ops/sample/argmax_rows.wgsl",
                  .values = {{"FROM", from_values ? "values" : "candidates"},
                             {"TO", to_ids ? "ids" : "candidates"},
                             {"LIVE", int64_t{live.defined()}}}},
                 bindings, params, webgpu::fold(n_rows * n_chunks, capabilities));
}

int64_t candidates_bytes(const Argmax::Args& args) {
  return args.x.dim(0) * ceil_div(args.x.dim(1), kChunk) * kCandidateBytes;
}

void record_two_stages(Queue& queue, const Argmax::Args& args, const Tensor& scratch) {
  const int64_t n_rows = args.x.dim(0);
  const Tensor candidates =
      scratch.slice(0, candidates_bytes(args)).reshaped({n_rows, candidates_bytes(args) / n_rows});
  record_chunks(queue, candidates, args.x, args.live, kChunk);
  record_chunks(queue, args.ids, candidates, args.live, candidates.dim(1) / kCandidateBytes);
}

}  // namespace

void add_argmax_webgpu(KernelTable& table, const webgpu::Capabilities& capabilities) {
  table.add<Argmax>({
      .name = "chunks_then_rows",
      .supports =
          [=](const Argmax::Args& args, const Caps&) {
            return args.x.dim(0) > 0 && args.x.dim(1) > 2 * kChunk &&
                   fits_binding(args.x, capabilities);
          },
      .scratch_bytes = candidates_bytes,
      .run = record_two_stages,
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
  table.add<Argmax>({
      .name = "row_per_workgroup",
      .supports = [=](const Argmax::Args& args,
                      const Caps&) { return fits_binding(args.x, capabilities); },
      .run =
          [](Queue& queue, const Argmax::Args& args, const Tensor&) {
            record_chunks(queue, args.ids, args.x, args.live, args.x.dim(1));
          },
      .traits = {.isa = "core", .reduction_order = "webgpu"},
  });
}

}  // namespace tessera
