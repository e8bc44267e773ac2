#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"

namespace tessera {

/// Work of an op: floating-point (or integer multiply-add) operations, and the least bytes that
/// must move between memory and the device's cores.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// One op of a step as it was recorded.
struct OpRecord {
  std::string_view op;
  std::string_view row;
  bool composed = false;  ///< its parts are records of their own and carry the cost
  bool reference = false;
  Cost cost;
  std::vector<std::pair<std::string, Tensor>> outputs;
};

/// Sees every op right after it was recorded (tracing, profiling). It may end and run what was
/// recorded so far; steps recorded under an observer are not replayed.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void recorded(Queue& queue, const OpRecord& record) = 0;
};

/// A recorded step, ready to run any number of times.
class Step {
 public:
  virtual ~Step() = default;
};

/// Records ops into steps and runs them. Nothing runs inside an op call. Not thread-safe.
class Queue {
 public:
  Queue(Device& device, const KernelTable& table, Arena& arena)
      : device_(device), table_(table), arena_(arena) {}
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device& device() const { return device_; }
  const KernelTable& table() const { return table_; }
  Arena& arena() const { return arena_; }

  /// True for the queue that plans: rows are chosen and counted, kernels are not recorded.
  virtual bool planning() const { return false; }

  virtual void begin() = 0;
  virtual std::unique_ptr<Step> end() = 0;

  /// Small data for the next step (lengths, positions, token ids), ordered before it.
  virtual void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) = 0;
  /// Four-byte words that an earlier step made, for the next one: ordered like write().
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  /// Asks for the bytes of a dense tensor as the next step leaves them. receive() gives them.
  virtual void request(const Tensor& tensor) = 0;
  /// One submit a step.
  virtual void submit(const Step& step) = 0;
  /// Waits for the oldest request() that is still open, and for nothing submitted after it. `bytes`
  /// has the size of its tensor. Errors of the device surface here as in wait().
  virtual Status receive(std::span<std::byte> bytes) = 0;
  /// Waits for everything submitted; where errors of the device surface, with the op's label.
  virtual Status wait() = 0;

  void set_observer(OpObserver* observer) { observer_ = observer; }
  OpObserver* observer() const { return observer_; }

  /// Called by launch() for every op; not for use elsewhere.
  virtual void note(const OpRecord& record) {
    if (observer_) observer_->recorded(*this, record);
  }

 private:
  Device& device_;
  const KernelTable& table_;
  Arena& arena_;
  OpObserver* observer_ = nullptr;
};

/// Runs a model's code without launching anything: row choices, costs and (in its arena) the
/// slots of a step, for shapes that are bounds.
class PlanQueue final : public Queue {
 public:
  using Queue::Queue;
  bool planning() const override { return true; }
  void begin() override { records_.clear(); }
  std::unique_ptr<Step> end() override { return std::make_unique<Step>(); }
  void write(Buffer&, int64_t, std::span<const std::byte>) override {}
  void copy(const Tensor&, const Tensor&) override {}
  void request(const Tensor&) override {}
  void submit(const Step&) override {}
  Status receive(std::span<std::byte>) override { return ok_status(); }
  Status wait() override { return ok_status(); }
  void note(const OpRecord& record) override { records_.push_back(record); }

  const std::vector<OpRecord>& records() const { return records_; }

 private:
  std::vector<OpRecord> records_;
};

}  // namespace tessera
