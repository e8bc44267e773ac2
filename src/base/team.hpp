#pragma once

// Included by kernels compiled for one instruction set: declarations and plain data only.

#include <stdint.h>

namespace tessera {

/// The view that one thread has of the team executing a recorded step: every thread runs the same
/// function (SPMD) and shares its work in chunks. Chunks are fixed by the kernel (so results do not
/// depend on the thread count); which thread takes which chunk is dynamic.
class Team {
 public:
  int index() const { return index_; }
  int size() const { return size_; }

  /// The next chunk that no thread has taken since the last barrier: 0, 1, 2, ...
  /// Loop with `for (int64_t c; (c = team.next_chunk()) < n_chunks;)`.
  int64_t next_chunk() noexcept;

  /// Waits for all threads of the team; everything written before is visible behind it. Starts a
  /// new count of chunks.
  void barrier() noexcept;

 private:
  friend class ThreadTeam;
  struct Shared;
  Team(Shared* shared, int index, int size) : shared_(shared), index_(index), size_(size) {}
  Shared* shared_;
  int index_;
  int size_;
};

}  // namespace tessera
