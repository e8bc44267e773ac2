#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::bench {

/// A vendor library opened at run time, to be timed in turns with our kernels.
class Peer {
 public:
  virtual ~Peer() = default;
  /// "openblas"
  const std::string& name() const { return name_; }
  /// The file it came from.
  const std::string& path() const { return path_; }

  /// y[M,N] = x[M,K] w[N,K]^T, or x w with w [K,N] (`in_out`); all f32, dense.
  virtual void matmul(const float* x, const float* w, bool in_out, int64_t m, int64_t n, int64_t k,
                      float* y) = 0;

 protected:
  std::string name_, path_;
};

/// Opens the libraries that a list "openblas,onednn=/path/to/libdnnl.so" names: each in the file
/// behind the =, else the one in TESSERA_<NAME>, else under the names that systems give it. Throws
/// Error{kInvalidArgument} for an unknown name, Error{kUnsupported} for a library that is not
/// there.
std::vector<std::unique_ptr<Peer>> open_peers(const std::string& list, int n_threads);

}  // namespace tessera::bench
