#pragma once

#include <cstdint>
#include <type_traits>

#include "base/thread_team.hpp"

namespace tessera::bench {

/// Runs f(i) for i in [0, n_parts) on the team: a free thread takes the next part.
template <typename F>
void run_parts(ThreadTeam& team, int64_t n_parts, F&& f) {
  struct Job {
    std::remove_reference_t<F>* f;
    int64_t n_parts;
  };
  Job job = {&f, n_parts};
  team.run(
      [](void* context, int64_t, Team& member) noexcept {
        const Job& my = *static_cast<const Job*>(context);
        for (int64_t i; (i = member.next_chunk(my.n_parts)) < my.n_parts;) (*my.f)(i);
      },
      &job);
}

}  // namespace tessera::bench
