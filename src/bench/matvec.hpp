#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/row.hpp"

namespace tessera::bench {

/// The exercise of examples/matvec.cpp: one chain of sums against four AVX2 chains, each compiled
/// without optimisation and with -O3, on one thread.
struct MatvecOptions {
  int rows = 0, cols = 0;  ///< 0: 4096x4096 (64 MiB) and 1448x1448 (8 MiB)
};

struct MatvecFigure {
  std::string build, kernel;  ///< "-O3", "avx2"
  int rows = 0, cols = 0;
  double bytes = 0;  ///< matrix and vector
  Spread time_ns;    ///< of 20 runs behind one that does not count
  double gbs() const { return time_ns.median > 0 ? bytes / time_ns.median : 0; }
};

struct MatvecReport {
  Origin origin;
  bool has_avx2 = false;
  std::vector<MatvecFigure> figures;
  double largest_difference = 0;

  bool agrees() const { return largest_difference < 1e-3; }
  /// That of the kernel at that size; null if there is none.
  const MatvecFigure* find(const std::string& build, const std::string& kernel, int rows) const;
};

MatvecReport run_matvec(const MatvecOptions& options);
nlohmann::ordered_json to_json(const MatvecReport& report);
std::string describe(const MatvecReport& report);
/// What the figures say, in a sentence.
std::string verdict(const MatvecReport& report);

}  // namespace tessera::bench
