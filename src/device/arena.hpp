#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace tessera {

/// Memory of a step's intermediate tensors: slots, not offsets, each a buffer of its own (on WebGPU
/// no op may read and write the same buffer).
///
/// First the step's code runs while the arena plans (nothing is allocated, the largest size of each
/// slot is kept), once for every shape that may occur; `allocate()` then fixes the slots, and the
/// same code gets the same slots from there on. Slots are handed out last-returned first, whatever
/// their size, so the order of take and give decides alone.
class Arena {
 public:
  explicit Arena(Device& device);
  ~Arena();

  /// Ends planning: one buffer a slot. Throws Error{kOutOfMemory}.
  void allocate();
  bool planning() const { return planning_; }
  /// Of all slots planned so far.
  int64_t size_bytes() const;

 private:
  friend class Slot;
  Tensor take(DType dtype, const Shape& shape);
  void give(const Tensor& tensor);
  int64_t slot_bytes(int64_t bytes) const;

  struct Entry {
    std::unique_ptr<Buffer> buffer;  // while planning: a stand-in without memory
    int64_t size_bytes = 0;
  };
  Device& device_;
  bool planning_ = true;
  std::vector<Entry> slots_;
  std::vector<Buffer*> free_;  // the last one is taken first
};

/// Holds a slot of the arena for a scope: a dense tensor, uninitialised.
class Slot {
 public:
  Slot(Arena& arena, DType dtype, const Shape& shape)
      : arena_(arena), tensor_(arena.take(dtype, shape)) {}
  ~Slot() { arena_.give(tensor_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }  // NOLINT: reads as the tensor it is

 private:
  Arena& arena_;
  Tensor tensor_;
};

}  // namespace tessera
