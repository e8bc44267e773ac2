#include "ops/embedding/gather_rows_cpu.hpp"
#include "ops/quantize/decode_rows.inl"

namespace tessera::TESSERA_ISA {

void gather_rows(const GatherRowsArgs& args, Team& team) noexcept {
  const int64_t n_rows = live_rows(args.live, args.y.n_rows), n_cols = args.y.n_cols;
  for (int64_t i; (i = team.next_chunk(n_rows)) < n_rows;) {
    float* y = row_of<float>(args.y, i);
    if (args.ids[i] < args.table.n_rows) {
      decode_row(args.storage, row_of<unsigned char>(args.table, args.ids[i]), y, n_cols);
    } else {
      for (int64_t j = 0; j < n_cols; ++j) y[j] = 0;
    }
  }
}

}  // namespace tessera::TESSERA_ISA
