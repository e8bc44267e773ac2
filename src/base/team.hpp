#pragma once

// Included by kernels compiled for one instruction set: declarations and plain data only.

#include <stdint.h>

namespace tessera {

/// What one thread knows of the team that executes a recorded step. A kernel is one function that
/// every thread may run (SPMD); its work is cut into chunks. Chunks are fixed by the kernel (so
/// results do not depend on the thread count); which thread takes which chunk is dynamic, and which
/// threads come at all is unknown: a kernel is complete when its chunks are done, however late or
/// absent the others are.
///
/// So a kernel does all its work inside chunks. Behind a barrier, and behind its last chunk, it
/// touches nothing but its own copy of the arguments: the step may be over by then.
class Team {
 public:
  int size() const { return size_; }

  /// The next chunk that no thread has taken since the kernel or barrier before: 0, 1, 2, ...;
  /// n_chunks or more when none is left. Every call between two barriers passes the same n_chunks,
  /// and every thread asks until none is left:
  /// `for (int64_t c; (c = team.next_chunk(n_chunks)) < n_chunks;)`. At most 2^32 - 1 chunks.
  int64_t next_chunk(int64_t n_chunks) noexcept;

  /// Chunks behind it start when all before it are done, and see everything written in them. It
  /// does not wait: a thread without a chunk runs on to the kernel's end.
  void barrier() noexcept;

 private:
  friend class ThreadTeam;
  struct Shared;
  enum class State : uint8_t;
  Team(Shared* shared, int size) : shared_(shared), size_(size) {}

  bool try_enter() noexcept;
  void begin_op(int64_t i_op) noexcept;
  bool leads() const noexcept;
  uint32_t take() noexcept;

  Shared* shared_;
  int size_;
  State state_ = State{};
  int64_t i_op_ = 0;
  uint32_t i_phase_ = 0;        // barriers passed in this kernel
  uint32_t entered_phase_ = 0;  // the phase of the chunk with which this thread entered
  uint32_t n_held_ = 0;         // chunks taken since, not yet reported as done
  int64_t next_ = 0;  // while alone: the next chunk; on entering: that chunk, from the end
};

}  // namespace tessera
