#include "ops/attention/paged_attention.hpp"

#include <fmt/format.h>

#include "ops/attention/attention_cases.hpp"
#include "ops/attention/paged_batch.hpp"

namespace tessera {
namespace {

struct Heads {
  int64_t q, kv, d;
};

struct Cases {
  std::vector<Case<PagedAttention>> all;

  Case<PagedAttention>& add(std::string_view kind, const PagedBatch& batch, Heads h, DType pages) {
    const Tensor page = Tensor::dense(pages, {batch.n_pages, h.kv, batch.page_tokens, h.d});
    all.push_back(
        {.name = fmt::format("{}{}_{}tokens_{}x{}x{}_page{}x{}", kind, name(pages), batch.n_tokens,
                             h.q, h.kv, h.d, batch.max_pages, batch.page_tokens),
         .args = {.y = f32({batch.n_tokens, h.q, h.d}),
                  .q = f32({batch.n_tokens, h.q, h.d}),
                  .k_pages = page,
                  .v_pages = page,
                  .positions = batch.positions_tensor(),
                  .sequences = batch.sequences_tensor(),
                  .block_tables = batch.block_tables_tensor(),
                  .scale = 1 / std::sqrt(static_cast<float>(h.d))},
         .fills = {{"k_pages", pages_fill(batch, h.kv, h.d)},
                   {"v_pages", pages_fill(batch, h.kv, h.d)},
                   {"positions", fill::values(batch.positions)},
                   {"sequences", fill::values(batch.sequences)},
                   {"block_tables", fill::values(batch.block_tables)}}});
    return all.back();
  }

  void add_heads(DType pages) {
    for (const Heads h : std::initializer_list<Heads>{{1, 1, 1},
                                                      {2, 1, 3},
                                                      {3, 3, 8},
                                                      {3, 1, 17},
                                                      {4, 1, 32},
                                                      {9, 3, 64},
                                                      {9, 1, 64},
                                                      {4, 4, 80},
                                                      {4, 1, 128},
                                                      {2, 1, 256}}) {
      add("one_", make_paged_batch({{1, 1}}, 4, 0), h, pages);
      add("decode_", make_paged_batch({{19, 1}}, 8, 0), h, pages);
      add("ragged_", make_paged_batch({{9, 1}, {5, 5}, {17, 3}, {1, 1}}, 4, 2), h, pages);
    }
  }

  void add_lengths(DType pages) {
    for (const int64_t length : {2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 129, 257}) {
      add(fmt::format("length{}_", length), make_paged_batch({{length, 1}}, 16, 0), {3, 1, 32},
          pages);
      add(fmt::format("prompt{}_", length), make_paged_batch({{length, length}}, 16, 0), {3, 1, 32},
          pages);
    }
    for (const int64_t page_tokens : {1, 2, 5, 32, 64}) {
      add("pages_", make_paged_batch({{70, 3}, {33, 33}}, page_tokens, 1), {4, 2, 32}, pages);
    }
    // Three sequences over the same prompt, and a chunk of a long prompt beside many decodes.
    add("shared_", make_paged_batch({{40, 1}, {37, 4, 2}, {50, 1, 1}}, 16, 1), {9, 3, 64}, pages);
    std::vector<PagedSequence> mixed = {{100, 40}};
    for (int64_t i = 0; i < 9; ++i) mixed.push_back({1 + 13 * i, 1});
    add("mixed_", make_paged_batch(mixed, 16, 5), {9, 3, 64}, pages);
  }

  void add_options(DType pages) {
    const PagedBatch batch = make_paged_batch({{70, 9}, {33, 1}, {20, 20}}, 16, 3);
    for (const int64_t window : {1, 2, 15, 16, 17, 1000}) {
      add(fmt::format("window{}_", window), batch, {3, 1, 32}, pages).args.window = window;
    }
    for (const float cap : {1.0f, 30.0f}) {
      add(fmt::format("cap{}_", cap), batch, {3, 1, 32}, pages).args.soft_cap = cap;
    }
    Case<PagedAttention>& both = add("window9_cap20_", batch, {4, 2, 64}, pages);
    both.args.window = 9;
    both.args.soft_cap = 20;
    add("sharp_", batch, {3, 1, 64}, pages).fills["q"] = fill::normal(30);
    add("equal_", batch, {3, 1, 64}, pages).fills["q"] = fill::constant(0);
    for (const int64_t live : {0, 1, 12, 33}) {
      Case<PagedAttention>& c = add(fmt::format("live_{}_", live), batch, {3, 1, 20}, pages);
      c.args.q = with_gap(c.args.q, 3);
      c.args.y = with_gap(c.args.y, 1);
      c.args.live = live_tensor();
      c.fills["live"] = fill::constant(static_cast<double>(live));
    }
    add("no_tokens_", make_paged_batch({{5, 0}}, 4, 0), {3, 1, 16}, pages);
  }

  void add_bench(DType pages) {
    const auto bench = [&](const PagedBatch& batch, Heads h, bool test = false) {
      Case<PagedAttention>& c = add("bench_", batch, h, pages);
      c.quick = false;
      c.bench = true;
      c.test = test;
    };
    bench(make_paged_batch({{1024, 1}}, 16, 0), {9, 3, 64}, true);
    bench(make_paged_batch(std::vector<PagedSequence>(40, {500, 1}), 16, 0), {9, 3, 64});
    // SmolLM2-135M and Qwen2.5-0.5B: a prompt, and one token behind one.
    for (const Heads h : std::initializer_list<Heads>{{9, 3, 64}, {14, 2, 64}}) {
      for (const int64_t length : {512, 2048, 4096}) {
        bench(make_paged_batch({{length, length}}, 32, 0), h);
      }
      for (const int64_t length : {512, 4096, 32768}) {
        bench(make_paged_batch({{length, 1}}, 32, 0), h);
      }
    }
  }
};

}  // namespace

template <>
std::vector<Case<PagedAttention>> cases<PagedAttention>() {
  Cases cases;
  for (const DType pages : {DType::kF32, DType::kF16}) {
    cases.add_heads(pages);
    cases.add_lengths(pages);
    cases.add_options(pages);
    cases.add_bench(pages);
  }
  for (Case<PagedAttention>& c : cases.all) {
    const int64_t n_visible = c.args.block_tables.dim(1) * c.args.k_pages.dim(2);
    c.bound = [args = c.args, n_visible](const CaseInputs& in, std::string_view,
                                         std::span<const double> reference) {
      return attention_errors(in, "k_pages", "v_pages", static_cast<double>(args.scale),
                              static_cast<double>(args.soft_cap), n_visible, reference);
    };
  }
  return std::move(cases.all);
}

}  // namespace tessera
