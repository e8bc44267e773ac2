#include "device/arena.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"

namespace tessera {
namespace {

class PlannedBuffer : public Buffer {
 public:
  explicit PlannedBuffer(Device& device) : Buffer(device, 0) {}
};

}  // namespace

Arena::Arena(Device& device) : device_(device) {}
Arena::~Arena() = default;

int64_t Arena::slot_bytes(int64_t bytes) const {
  return round_up(std::max<int64_t>(bytes, 1), device_.caps().alignment_bytes);
}

Tensor Arena::take(DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::dense(dtype, shape);
  if (free_.empty()) {
    if (!planning_) {
      fail(ErrorKind::kDevice, "arena", "a step needs more than the {} slots that were planned",
           slots_.size());
    }
    slots_.push_back({std::make_unique<PlannedBuffer>(device_), 0});
    free_.push_back(slots_.back().buffer.get());
  }
  tensor.buffer = free_.back();
  const int64_t bytes = slot_bytes(tensor.span_bytes());
  if (planning_) {
    const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Entry& entry) {
      return entry.buffer.get() == tensor.buffer;
    });
    slot->size_bytes = std::max(slot->size_bytes, bytes);
  } else if (bytes > tensor.buffer->size_bytes()) {
    fail(ErrorKind::kDevice, "arena", "a step needs a slot of {} bytes where {} were planned",
         bytes, tensor.buffer->size_bytes());
  }
  free_.pop_back();
  return tensor;
}

void Arena::give(const Tensor& tensor) {
  free_.push_back(tensor.buffer);
}

void Arena::allocate() {
  TESSERA_DCHECK(planning_ && free_.size() == slots_.size());
  // The free list keeps its order: it decides which slot comes next.
  std::vector<Buffer*> free_list;
  for (Buffer* planned : free_) {
    for (Entry& slot : slots_) {
      if (slot.buffer.get() != planned) continue;
      slot.buffer = device_.allocate(slot.size_bytes);
      free_list.push_back(slot.buffer.get());
      break;
    }
  }
  free_ = std::move(free_list);
  planning_ = false;
}

int64_t Arena::size_bytes() const {
  int64_t total = 0;
  for (const Entry& slot : slots_) total += slot.size_bytes;
  return total;
}

}  // namespace tessera
