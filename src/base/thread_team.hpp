#pragma once

#include <memory>

#include "base/team.hpp"

namespace tessera {

/// A fixed set of threads that run SPMD jobs together. The calling thread is member 0; the others
/// wait between jobs, spinning briefly and then parked. Threads are not pinned; the default size
/// respects the process's affinity mask and cgroup quota.
class ThreadTeam {
 public:
  /// `n_threads` >= 1, the caller included. Throws Error{kInvalidArgument} outside 1..1024.
  explicit ThreadTeam(int n_threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  /// Runs job(context, team) on every member and returns when all are done. One run at a time.
  using Job = void (*)(void* context, Team& team) noexcept;
  void run(Job job, void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// CPUs that this process may use: the affinity mask, cut down to the cgroup's CPU quota; >= 1.
int available_cpus();

}  // namespace tessera
