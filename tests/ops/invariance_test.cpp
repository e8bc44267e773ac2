// Rows of one reduction order give equal bits for every batch: a row of a product does not depend
// on the rows beside it, nor a query of attention on the other queries.

#include <gtest/gtest.h>

#include <map>

#include "conformance.hpp"
#include "cpu/device.hpp"
#include "ops/attention/paged_attention.hpp"
#include "ops/attention/paged_batch.hpp"
#include "ops/cpu_rows.hpp"
#include "ops/matmul/matmul.hpp"

namespace tessera::conformance {
namespace {

Harness make_cpu() {
  return make_harness(cpu::device_kind(cpu::CpuDevice::Memory::kShared, add_cpu_rows), 0,
                      {.n_threads = 2, .isa = ""});
}

/// The values of the first operand, which is the output, behind its guard band.
template <typename Op>
std::vector<double> output_of(Harness& harness, const Row<Op>& row, const Case<Op>& c,
                              const std::vector<Operand>& operands) {
  const Images images =
      execute(harness.main, operands, [&](Queue& queue, std::span<const Tensor> tensors) {
        launch_row<Op>(queue, row, with_tensors<Op>(c.args, tensors));
      });
  return decode(operands[0].tensor, output_bytes(operands[0], images[0]));
}

TEST(BatchInvariance, AProductsRowDoesNotDependOnTheOthers) {
  Harness harness = make_cpu();
  constexpr int64_t kRows = 143, kColumns = 37;
  int n_compared = 0;
  for (const DType w : ops::kWeightTypes) {
    for (const DType x : {DType::kF32, DType::kQ8}) {
      if (x == DType::kQ8 && !is_block_format(w)) continue;
      const int64_t k = is_block_format(w) ? 512 : 611;
      std::map<std::string_view, std::vector<double>> by_order;
      // The longest batch first: the others are its beginnings.
      for (const int64_t m : {kRows, int64_t{128}, int64_t{33}, int64_t{17}, int64_t{9}, int64_t{8},
                              int64_t{5}, int64_t{4}, int64_t{3}, int64_t{2}, int64_t{1}}) {
        Case<Matmul> whole = {.name = "whole",
                              .args = {.y = f32({kRows, kColumns}),
                                       .x = Tensor::dense(x, {kRows, k}),
                                       .w = Tensor::dense(w, {kColumns, k})}};
        std::vector<Operand> operands = make_operands(whole);
        whole.args.y = operands[0].tensor = whole.args.y.slice(0, m);
        whole.args.x = operands[1].tensor = whole.args.x.slice(0, m);
        for (Operand& operand : operands) {
          operand.bytes.resize(static_cast<size_t>(operand.tensor.span_bytes()));
        }
        for (const Row<Matmul>& row : harness.main.table.rows<Matmul>()) {
          if (row.traits.reduction_order.empty() || row.traits.reference ||
              !row.supports(whole.args, harness.main.device->caps())) {
            continue;
          }
          std::vector<double> y = output_of(harness, row, whole, operands);
          const auto [first, added] = by_order.try_emplace(row.traits.reduction_order, y);
          const size_t n = std::min(y.size(), first->second.size());
          y.resize(n);
          EXPECT_TRUE(std::equal(y.begin(), y.end(), first->second.begin()))
              << row.name << ", " << name(x) << " x " << name(w) << ", " << m << " rows";
          n_compared += added ? 0 : 1;
        }
      }
    }
  }
  EXPECT_GT(n_compared, 0);
}

TEST(BatchInvariance, DeterministicModeKeepsToOneOrder) {
  Harness harness = make_cpu();
  KernelTable& table = harness.main.table;
  for (const bool deterministic : {false, true}) {
    table.deterministic(deterministic);
    bool any_other = false;
    for (const WeightOrder order : {WeightOrder::kOutIn, WeightOrder::kInOut}) {
      for (const DType w : ops::kWeightTypes) {
        if (order == WeightOrder::kInOut && is_block_format(w)) continue;
        std::string_view first;
        for (const int64_t m : {1, 6, 7, 16, 127, 128, 1024}) {
          const Matmul::Args args = {.y = f32({m, 64}),
                                     .x = f32({m, 256}),
                                     .w = order == WeightOrder::kOutIn
                                              ? Tensor::dense(w, {64, 256})
                                              : Tensor::dense(w, {256, 64}),
                                     .order = order};
          const Row<Matmul>& row = table.pick<Matmul>(args, harness.main.device->caps());
          if (first.empty()) first = row.traits.reduction_order;
          any_other |= row.traits.reduction_order != first;
        }
      }
    }
    EXPECT_NE(any_other, deterministic);
  }
}

TEST(BatchInvariance, AQueryDoesNotDependOnTheOthers) {
  Harness harness = make_cpu();
  const PagedBatch batch = make_paged_batch({{70, 20}, {33, 1}, {45, 7, 1}}, 16, 0);
  int n_compared = 0;
  for (const Row<PagedAttention>& row : harness.main.table.rows<PagedAttention>()) {
    if (row.traits.reference) continue;
    const Tensor pages = Tensor::dense(DType::kF16, {batch.n_pages, 3, 16, 64});
    Case<PagedAttention> c = {.name = "whole",
                              .args = {.y = f32({batch.n_tokens, 9, 64}),
                                       .q = f32({batch.n_tokens, 9, 64}),
                                       .k_pages = pages,
                                       .v_pages = pages,
                                       .positions = batch.positions_tensor(),
                                       .sequences = batch.sequences_tensor(),
                                       .block_tables = batch.block_tables_tensor(),
                                       .scale = 0.125f},
                              .fills = {{"k_pages", pages_fill(batch, 3, 64)},
                                        {"v_pages", pages_fill(batch, 3, 64)},
                                        {"positions", fill::values(batch.positions)},
                                        {"sequences", fill::values(batch.sequences)},
                                        {"block_tables", fill::values(batch.block_tables)}}};
    if (!row.supports(c.args, harness.main.device->caps())) continue;
    const std::vector<Operand> operands = make_operands(c);
    const std::vector<double> together = output_of(harness, row, c, operands);
    for (int64_t t = 0; t < batch.n_tokens; ++t) {
      std::vector<Operand> alone = operands;
      Case<PagedAttention> one = c;
      const auto keep = [&](size_t index, Tensor& argument) {
        Operand& operand = alone[index];
        const Tensor part = operand.tensor.slice(t, 1);
        operand.bytes.erase(operand.bytes.begin(), operand.bytes.begin() + part.offset_bytes);
        operand.tensor = part;
        operand.tensor.offset_bytes = 0;
        operand.bytes.resize(static_cast<size_t>(part.span_bytes()));
        argument = operand.tensor;
      };
      keep(0, one.args.y);
      keep(1, one.args.q);
      keep(4, one.args.positions);
      keep(5, one.args.sequences);
      const std::vector<double> y = output_of(harness, row, one, alone);
      EXPECT_TRUE(
          std::equal(y.begin(), y.end(), together.begin() + t * static_cast<int64_t>(y.size())))
          << row.name << " token " << t;
      ++n_compared;
    }
  }
  EXPECT_GT(n_compared, 0);
}

}  // namespace
}  // namespace tessera::conformance
