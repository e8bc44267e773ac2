#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/registry.hpp"
#include "ops/cases.hpp"

namespace tessera::conformance {

/// Which part of the suite runs, and how.
struct Options {
  std::string op;   ///< empty: all
  std::string row;  ///< empty: all
  bool quick = false;
  int64_t most = 0;         ///< cases of an op, spread evenly over those selected; 0: all
  bool list = false;        ///< print every row and the cases that no kernel supports
  bool tuned_only = false;  ///< only rows that have configurations
  std::string tuning;       ///< which of them, for messages
};

struct Report {
  int n_passed = 0;
  int n_failed = 0;
  int n_skipped = 0;  ///< cases that no row but the reference supports
  std::vector<std::string> failures;
  std::vector<std::string> notes;  ///< with Options::list
  std::string current;             ///< what runs now, for when it crashes
  bool any_op = false;             ///< an op or a row of the options' names was there
  bool any_row = false;

  void fail(std::string text) {
    ++n_failed;
    failures.push_back(std::move(text));
  }
};

/// The device under test twice, with different numbers of threads: results may not depend on it.
/// Once where it has no threads.
struct Harness {
  struct Side {
    std::unique_ptr<Device> device;
    KernelTable table;
  };
  Side main, other;
};
Harness make_harness(const DeviceKind& kind, int index, const DeviceOptions& options);

/// One tensor of a case with its bytes before the step: values and, between strided rows, NaN.
struct Operand {
  std::string name;
  Access access;
  Tensor tensor;  // no buffer
  std::vector<std::byte> bytes;
};

/// What the f64 reference says of one output.
struct Expected {
  std::vector<double> values;   // row-major
  std::vector<bool> written;    // by element
  std::vector<double> allowed;  // absolute error
  std::vector<bool> unchecked;  // elements that may have any value; empty: none
  std::vector<std::byte> q8;    // quantised rows are compared byte by byte instead
};

/// Device memory of every operand after a step, guard bands included.
using Images = std::vector<std::vector<std::byte>>;
/// Records the row under test on operands that have buffers.
using Record = std::function<void(Queue&, std::span<const Tensor>)>;

/// Runs a step twice from the same memory. Throws Error when the two differ.
Images execute(Harness::Side& side, std::span<const Operand> operands, const Record& record);

/// The operands' bytes for the reference: f32 becomes f64, strides are left out.
class ReferenceRun {
 public:
  explicit ReferenceRun(std::span<const Operand> operands);
  std::span<const Tensor> tensors() const { return tensors_; }
  /// What the reference wrote, by operand (empty for inputs). Call after it ran.
  std::vector<Expected> expected(std::span<const Operand> operands, const CaseInputs& inputs,
                                 const Bound& bound) const;

 private:
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Tensor> tensors_;
};

CaseInputs case_inputs(std::span<const Operand> operands);

/// For devices whose kernels may assume finite inputs (Caps::finite_math): outputs may be anything
/// in a case that has other inputs, and where the reference is not finite.
void accept_any_value_for_non_finite(const CaseInputs& inputs, std::vector<Expected>& expected);

/// Empty, or what is wrong: guard bands, inputs, padding and unwritten elements must be as before,
/// and the written ones within their bounds. `largest_share` grows to the largest error as a share
/// of its bound.
std::string compare(std::span<const Operand> operands, std::span<const Expected> expected,
                    const Images& images, double& largest_share);
/// Empty, or the first operand and byte in which the images differ.
std::string difference(std::span<const Operand> operands, const Images& a, const Images& b);

/// The operand's own bytes in the memory that a step left behind.
std::span<const std::byte> output_bytes(const Operand& operand, std::span<const std::byte> image);

uint64_t seed_of(std::string_view case_name, std::string_view tensor);

template <typename Op>
typename Op::Args with_tensors(typename Op::Args args, std::span<const Tensor> tensors) {
  size_t next = 0;
  Op::visit(args, [&](std::string_view, Tensor& tensor, Access) {
    if (tensor.defined()) tensor = tensors[next++];
  });
  return args;
}

template <typename Op>
std::vector<Operand> make_operands(const Case<Op>& c) {
  std::vector<Operand> operands;
  Op::visit(c.args, [&](std::string_view name, const Tensor& tensor, Access access) {
    if (!tensor.defined()) return;
    Operand operand = {std::string(name), access, tensor, {}};
    if (access == Access::kWrite) {
      operand.bytes.assign(static_cast<size_t>(tensor.span_bytes()), std::byte{0xff});
    } else {
      operand.bytes = make_bytes(tensor, fill_of(c, name), seed_of(c.name, name));
    }
    operands.push_back(std::move(operand));
  });
  return operands;
}

/// A case and what the reference makes of it.
template <typename Op>
struct PreparedCase {
  explicit PreparedCase(const Case<Op>& c, bool finite_math = false) : operands(make_operands(c)) {
    Op::validate(c.args);
    const ReferenceRun run(operands);
    Op::reference(with_tensors<Op>(c.args, run.tensors()));
    const CaseInputs inputs = case_inputs(operands);
    expected = run.expected(operands, inputs, c.bound);
    if (finite_math) accept_any_value_for_non_finite(inputs, expected);
  }
  std::vector<Operand> operands;
  std::vector<Expected> expected;
};

/// What a row did on the cases so far.
struct RowSummary {
  int n_cases = 0;           ///< supported, whether or not they ran
  double largest_share = 0;  ///< largest error as a share of its bound
};

/// Empty, or what is wrong with the row on this case. `images` receives the outputs.
template <typename Op>
std::string check_row(Harness& harness, const std::string& row_name, const Case<Op>& c,
                      const PreparedCase<Op>& prepared, Images& images, RowSummary& summary) {
  const auto run = [&](Harness::Side& side) {
    const auto& rows = side.table.template rows<Op>();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row<Op>& candidate) {
      return candidate.name == row_name;
    });
    return execute(side, prepared.operands, [&](Queue& queue, std::span<const Tensor> tensors) {
      launch_row<Op>(queue, *row, with_tensors<Op>(c.args, tensors));
    });
  };
  images = run(harness.main);
  std::string wrong = compare(prepared.operands, prepared.expected, images, summary.largest_share);
  if (!wrong.empty() || !harness.other.device) return wrong;
  wrong = difference(prepared.operands, images, run(harness.other));
  return wrong.empty() ? "" : "other bits with another number of threads: " + wrong;
}

/// Every row of the op against every case that it supports.
template <typename Op>
void check_op(Harness& harness, const Options& options, const std::vector<Case<Op>>& all_cases,
              Report& report) {
  if (!options.op.empty() && options.op != Op::kName) return;
  report.any_op = true;
  const Caps& caps = harness.main.device->caps();
  const auto& rows = harness.main.table.template rows<Op>();
  const std::string op(Op::kName);
  std::map<std::string, RowSummary> summaries;
  const auto selected = [&](const Case<Op>& c) { return c.test && (c.quick || !options.quick); };
  const int64_t n_selected = std::count_if(all_cases.begin(), all_cases.end(), selected);
  const int64_t n_wanted = options.most == 0 ? n_selected : std::min(options.most, n_selected);
  int64_t i_selected = 0;
  for (const Case<Op>& c : all_cases) {
    if (!c.test) continue;
    // Every n-th, also where n is no whole number.
    const bool wanted = selected(c) && i_selected++ * n_wanted % n_selected < n_wanted;
    std::unique_ptr<PreparedCase<Op>> prepared;
    std::map<std::string_view, std::pair<std::string, Images>> by_order;
    bool any_kernel = false;
    for (const Row<Op>& row : rows) {
      if (options.tuned_only && row.traits.tuned.empty()) continue;
      if (!row.supports(c.args, caps)) continue;
      any_kernel = any_kernel || !row.traits.reference;
      RowSummary& summary = summaries[row.name];
      ++summary.n_cases;
      if ((!options.row.empty() && options.row != row.name) || !wanted) continue;
      const std::string label = op + " / " + row.name + options.tuning + " / " + c.name + ": ";
      report.current = label;
      try {
        if (!prepared) prepared = std::make_unique<PreparedCase<Op>>(c, caps.finite_math);
        Images images;
        std::string wrong = check_row(harness, row.name, c, *prepared, images, summary);
        if (wrong.empty() && !row.traits.reduction_order.empty()) {
          const auto [first, added] =
              by_order.try_emplace(row.traits.reduction_order, row.name, images);
          if (!added) wrong = difference(prepared->operands, first->second.second, images);
          if (!wrong.empty()) {
            wrong = "promises the bits of " + first->second.first + ": " + wrong;
          }
        }
        if (wrong.empty()) {
          ++report.n_passed;
        } else {
          report.fail(label + wrong);
        }
      } catch (const Error& error) {
        // A composition of an operation that has no row here: a hole, not a fault.
        const bool hole = row.traits.composed && error.kind() == ErrorKind::kUnsupported;
        if (!hole) report.fail(label + error.what());
        if (hole && options.list) report.notes.push_back("hole: " + label + error.what());
        if (hole) ++report.n_skipped;
      } catch (const std::exception& error) {
        report.fail(label + error.what());
      }
    }
    if (!any_kernel && options.row.empty() && !options.tuned_only) {
      ++report.n_skipped;
      if (options.list) report.notes.push_back("hole: " + op + " / " + c.name);
    }
  }
  for (const Row<Op>& row : rows) {
    if (!options.row.empty() && options.row != row.name) continue;
    if (options.tuned_only && row.traits.tuned.empty()) continue;
    report.any_row = true;
    if (options.list) {
      report.notes.push_back(
          fmt::format("row: {} / {}, {} cases, largest error {:.2f} of its bound", op, row.name,
                      summaries[row.name].n_cases, summaries[row.name].largest_share));
    }
    if (summaries[row.name].n_cases == 0) {
      report.fail(op + " / " + row.name + ": row never ran: it supports none of the cases");
    }
  }
}

}  // namespace tessera::conformance
