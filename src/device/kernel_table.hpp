#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "device/device.hpp"

namespace tessera {

struct RowTraits {
  std::string_view isa =
      {};  ///< instruction set or capability tier; empty where it makes no difference
  bool composed = false;                  ///< records other ops instead of a kernel
  bool reference = false;                 ///< the plain f64 loops: refused unless allowed
  std::string_view reduction_order = {};  ///< rows of equal order promise equal bits for every M
  /// Its bits differ from those of the row that takes over for fewer tokens: not for
  /// deterministic mode.
  bool many_tokens_only = false;
  std::string_view tuned = {};  ///< kernel whose configurations come from the device's tuning
};

/// One kernel for one contract. `Op` is the contract (ops/op.hpp).
template <typename Op>
struct Row {
  using Args = typename Op::Args;
  std::string name;  ///< what it does, and its tier: "dot_rows.avx2"
  std::function<bool(const Args&, const Caps&)> supports;
  std::function<int64_t(const Args&)> scratch_bytes = nullptr;  ///< none when null
  /// Records the kernel; `scratch` is a u8-like tensor of at least scratch_bytes.
  std::function<void(Queue&, const Args&, const Tensor& scratch)> run;
  RowTraits traits;
};

/// The rows of every op on one device, best first: the first that supports the arguments runs,
/// unless another is forced.
class KernelTable {
 public:
  KernelTable() = default;
  KernelTable(KernelTable&&) = default;
  KernelTable& operator=(KernelTable&&) = default;

  template <typename Op>
  void add(Row<Op> row) {
    auto& slot = rows_[std::string(Op::kName)];
    if (!slot) slot = std::make_unique<RowsOf<Op>>();
    static_cast<RowsOf<Op>&>(*slot).rows.push_back(std::move(row));
  }

  template <typename Op>
  const std::vector<Row<Op>>& rows() const {
    static const std::vector<Row<Op>> kNone;
    const auto found = rows_.find(std::string(Op::kName));
    return found == rows_.end() ? kNone : static_cast<const RowsOf<Op>&>(*found->second).rows;
  }

  /// Throws Error{kUnsupported} that names the op and its rows when none fits.
  template <typename Op>
  const Row<Op>& pick(const typename Op::Args& args, const Caps& caps) const {
    if (const Row<Op>* row = find<Op>(args, caps)) return *row;
    refuse(Op::kName, caps);
  }

  /// The row that pick() gives; null where that throws.
  template <typename Op>
  const Row<Op>* find(const typename Op::Args& args, const Caps& caps) const {
    const auto forced = forced_.find(std::string(Op::kName));
    for (const Row<Op>& row : rows<Op>()) {
      if (row.traits.reference && !allow_reference_) continue;
      if (row.traits.many_tokens_only && deterministic_) continue;
      if (forced != forced_.end() && row.name != forced->second) continue;
      if (row.supports(args, caps)) return &row;
    }
    return nullptr;
  }

  /// Only the row of that name runs for the op; throws Error{kInvalidArgument} listing the rows
  /// when there is none. Must happen before a model is loaded: weights are prepared for it.
  void force(std::string_view op, std::string_view row);
  void allow_reference(bool allowed) { allow_reference_ = allowed; }
  /// Rows of one reduction order for every number of tokens, where they promise equal bits: results
  /// depend neither on what else is in a batch nor on how a prompt is cut.
  void deterministic(bool wanted) { deterministic_ = wanted; }

  std::vector<std::string> ops() const;
  std::vector<std::string> row_names(std::string_view op) const;

 private:
  struct AnyRows {
    virtual ~AnyRows() = default;
    virtual std::vector<std::string> names() const = 0;
  };
  template <typename Op>
  struct RowsOf final : AnyRows {
    std::vector<Row<Op>> rows;
    std::vector<std::string> names() const override {
      std::vector<std::string> result;
      for (const Row<Op>& row : rows) result.push_back(row.name);
      return result;
    }
  };

  [[noreturn]] void refuse(std::string_view op, const Caps& caps) const;

  std::map<std::string, std::unique_ptr<AnyRows>> rows_;
  std::map<std::string, std::string> forced_;
  bool allow_reference_ = false, deterministic_ = false;
};

}  // namespace tessera
