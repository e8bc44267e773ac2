#include "ops/sample/top_k_cpu.hpp"

namespace tessera::TESSERA_ISA {
namespace {

/// The k best values so far, in the output rows themselves: a heap whose root is the worst of them.
struct Heap {
  float* values;
  uint32_t* ids;
  int64_t size;
};

inline bool is_nan(float value) {
  return value != value;
}

/// The order of the result: larger values first, NaN last, lower indices first among equals.
inline bool better(float value, uint32_t id, float other, uint32_t other_id) {
  if (value > other || (is_nan(other) && !is_nan(value))) return true;
  if (other > value || (is_nan(value) && !is_nan(other))) return false;
  return id < other_id;
}

inline bool better(const Heap& heap, int64_t i, int64_t j) {
  return better(heap.values[i], heap.ids[i], heap.values[j], heap.ids[j]);
}

inline void exchange(Heap& heap, int64_t i, int64_t j) {
  const float value = heap.values[i];
  const uint32_t id = heap.ids[i];
  heap.values[i] = heap.values[j];
  heap.ids[i] = heap.ids[j];
  heap.values[j] = value;
  heap.ids[j] = id;
}

/// Lets entry i sink below the children that are worse.
void sink(Heap& heap, int64_t i) {
  for (;;) {
    int64_t worst = i;
    for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap.size; ++child) {
      if (better(heap, worst, child)) worst = child;
    }
    if (worst == i) return;
    exchange(heap, i, worst);
    i = worst;
  }
}

void top_k(const float* x, int64_t n, Heap heap) {
  const int64_t k = heap.size;
  for (int64_t i = 0; i < k; ++i) {
    heap.values[i] = x[i];
    heap.ids[i] = static_cast<uint32_t>(i);
  }
  for (int64_t i = k / 2 - 1; i >= 0; --i) sink(heap, i);
  for (int64_t i = k; i < n; ++i) {
    // An equal value has a higher index than all in the heap: it stays out.
    if (!(x[i] > heap.values[0] || (is_nan(heap.values[0]) && !is_nan(x[i])))) continue;
    heap.values[0] = x[i];
    heap.ids[0] = static_cast<uint32_t>(i);
    sink(heap, 0);
  }
  // The worst goes to the end, again and again.
  while (heap.size > 1) {
    --heap.size;
    exchange(heap, 0, heap.size);
    sink(heap, 0);
  }
}

}  // namespace

void top_k_rows(const TopKArgs& args, Team& team) noexcept {
  const int64_t n_rows = live_rows(args.live, args.x.n_rows);
  for (int64_t i; (i = team.next_chunk(n_rows)) < n_rows;) {
    top_k(row_of<const float>(args.x, i), args.x.n_cols,
          {row_of<float>(args.values, i), row_of<uint32_t>(args.ids, i), args.values.n_cols});
  }
}

}  // namespace tessera::TESSERA_ISA
