#pragma once

#include <memory>

#include "base/team.hpp"

namespace tessera {

/// A fixed set of threads that run jobs together. The calling thread is one of them; the others
/// wait between jobs, spinning briefly and then parked. Threads are not pinned; the default size
/// respects the process's affinity mask and cgroup quota. No more of them are woken than CPUs are
/// there to run them.
class ThreadTeam {
 public:
  /// `n_threads` >= 1, the caller included. Throws Error{kInvalidArgument} outside 1..1024.
  explicit ThreadTeam(int n_threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  /// Runs job(context, 0, team), job(context, 1, team) ... job(context, n_ops - 1, team), one after
  /// the other, each as a kernel of the team (see Team): op i + 1 starts when the chunks of op i
  /// are done. Returns when those of the last one are. One run at a time.
  using Job = void (*)(void* context, int64_t i_op, Team& team) noexcept;
  void run(Job job, void* context, int64_t n_ops = 1);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// CPUs that this process may use: the affinity mask, cut down to the cgroup's CPU quota; >= 1.
int available_cpus();

}  // namespace tessera
