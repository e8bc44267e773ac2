#include "ops/rope/rope_kv_write.hpp"

#include <fmt/format.h>

#include "ops/attention/paged_batch.hpp"
#include "ops/rope/rope_cases.hpp"

namespace tessera {
namespace {

// q as in rope. A key in a page is off like one of k, wherever it came from, and in f16 may be the
// neighbour of the reference's value; values are stored as they are.
std::vector<double> allowed_errors(const CaseInputs& in, std::string_view output,
                                   std::span<const double> reference, DType pages) {
  if (output == "q") return rotation_errors(in["q"]);
  std::vector<double> allowed(reference.size());
  if (output == "v_pages") return allowed;
  double largest = 0;
  for (const double value : in["k"].values) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < allowed.size(); ++i) {
    allowed[i] = 4 * kUnitF32 * largest;
    if (pages == DType::kF16) allowed[i] += 2 * kUnitF16 * std::abs(reference[i]) + 0x1p-24;
  }
  return allowed;
}

struct Heads {
  int64_t q, kv, d, rotary;
};

struct Cases {
  std::vector<Case<RopeKvWrite>> all;

  Case<RopeKvWrite>& add(std::string_view kind, const PagedBatch& batch, Heads h, DType pages,
                         RopePairing pairing) {
    const int64_t t = batch.n_tokens;
    const Tensor page = Tensor::dense(pages, {batch.n_pages, h.kv, batch.page_tokens, h.d});
    all.push_back({.name = fmt::format("{}{}_{}_{}tokens_{}x{}x{}_r{}_page{}", kind,
                                       pairing == RopePairing::kInterleaved ? "pairs" : "halves",
                                       name(pages), t, h.q, h.kv, h.d, h.rotary, batch.page_tokens),
                   .args = {.q = f32({t, h.q, h.d}),
                            .k_pages = page,
                            .v_pages = page,
                            .k = f32({t, h.kv, h.d}),
                            .v = f32({t, h.kv, h.d}),
                            .rotation = f32({t, h.rotary / 2, 2}),
                            .positions = batch.positions_tensor(),
                            .sequences = batch.sequences_tensor(),
                            .block_tables = batch.block_tables_tensor(),
                            .pairing = pairing},
                   .fills = {{"rotation", rotation_fill(h.rotary / 2)},
                             {"positions", fill::values(batch.positions)},
                             {"sequences", fill::values(batch.sequences)},
                             {"block_tables", fill::values(batch.block_tables)}},
                   .bound = [pages](const CaseInputs& in, std::string_view output,
                                    std::span<const double> reference) {
                     return allowed_errors(in, output, reference, pages);
                   }});
    return all.back();
  }
};

}  // namespace

template <>
std::vector<Case<RopeKvWrite>> cases<RopeKvWrite>() {
  Cases cases;
  for (const DType pages : {DType::kF32, DType::kF16}) {
    for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalfSplit}) {
      for (const Heads h : std::initializer_list<Heads>{{1, 1, 2, 2},
                                                        {3, 3, 6, 6},
                                                        {3, 1, 10, 6},
                                                        {9, 3, 18, 18},
                                                        {8, 2, 32, 32},
                                                        {9, 3, 64, 64},
                                                        {4, 1, 80, 32},
                                                        {4, 2, 128, 128},
                                                        {1, 1, 256, 256}}) {
        cases.add("one_", make_paged_batch({{5, 1}}, 4, 0), h, pages, pairing);
        cases.add("ragged_", make_paged_batch({{9, 1}, {5, 5}, {17, 2}}, 4, 3), h, pages, pairing);
      }
      const PagedBatch batch = make_paged_batch({{33, 7}, {16, 1}}, 16, 2);
      for (const int64_t live : {0, 5, 8, 10}) {
        Case<RopeKvWrite>& c =
            cases.add(fmt::format("live_{}_", live), batch, {3, 1, 32, 32}, pages, pairing);
        c.args.live = live_tensor();
        c.fills["live"] = fill::constant(static_cast<double>(live));
      }
      Case<RopeKvWrite>& gaps = cases.add("gaps_", batch, {3, 1, 36, 36}, pages, pairing);
      for (Tensor* tensor : {&gaps.args.q, &gaps.args.k, &gaps.args.v}) {
        *tensor = with_gap(*tensor, 3);
      }
      for (const int64_t t : {1, 512}) {
        Case<RopeKvWrite>& c = cases.add("bench_", make_paged_batch({{1024, t}}, 16, 0),
                                         {9, 3, 64, 64}, pages, pairing);
        c.quick = false;
        c.bench = true;
      }
    }
  }
  return std::move(cases.all);
}

}  // namespace tessera
