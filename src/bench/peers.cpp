#include "bench/peers.hpp"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "base/error.hpp"

namespace tessera::bench {
namespace {

// The libraries' interfaces, as their public documentation has them. A build of OpenBLAS with
// 64-bit integers has them in every place, so there are two.
template <typename Integer>
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, Integer m, Integer n, Integer k,
                       float alpha, const float* a, Integer lda, const float* b, Integer ldb,
                       float beta, float* c, Integer ldc);
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
using DnnlSgemm = int (*)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k,
                          float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                          float beta, float* c, int64_t ldc);
using SetThreads = void (*)(int n_threads);

struct Known {
  const char* name;
  const char* variable;
  std::vector<const char*> files;
};

const std::vector<Known>& known_peers() {
  static const std::vector<Known> peers = {
      {"openblas",
       "TESSERA_OPENBLAS",
       {"libopenblas.so.0", "libopenblas.so", "libscipy_openblas64_.so", "libopenblas64.so.0"}},
      {"onednn", "TESSERA_ONEDNN", {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}},
      {"blis", "TESSERA_BLIS", {"libblis.so.4", "libblis.so"}},
      {"mkl", "TESSERA_MKL", {"libmkl_rt.so.2", "libmkl_rt.so.3", "libmkl_rt.so"}}};
  return peers;
}

/// The first of the symbols that the library has; null if none.
void* first_symbol(void* library, std::initializer_list<const char*> symbols) {
  for (const char* symbol : symbols) {
    if (void* found = dlsym(library, symbol)) return found;
  }
  return nullptr;
}

template <typename Integer>
class Blas final : public Peer {
 public:
  Blas(std::string name, std::string path, void* sgemm)
      : sgemm_(reinterpret_cast<Sgemm<Integer>>(sgemm)) {
    name_ = std::move(name);
    path_ = std::move(path);
  }
  void matmul(const float* x, const float* w, bool in_out, int64_t m, int64_t n, int64_t k,
              float* y) override {
    const auto integer = [](int64_t value) { return static_cast<Integer>(value); };
    sgemm_(kRowMajor, kNoTranspose, in_out ? kNoTranspose : kTranspose, integer(m), integer(n),
           integer(k), 1, x, integer(k), w, integer(in_out ? n : k), 0, y, integer(n));
  }

 private:
  Sgemm<Integer> sgemm_;
};

class OneDnn final : public Peer {
 public:
  OneDnn(std::string name, std::string path, void* sgemm)
      : sgemm_(reinterpret_cast<DnnlSgemm>(sgemm)) {
    name_ = std::move(name);
    path_ = std::move(path);
  }
  void matmul(const float* x, const float* w, bool in_out, int64_t m, int64_t n, int64_t k,
              float* y) override {
    const int status =
        sgemm_('N', in_out ? 'N' : 'T', m, n, k, 1, x, k, w, in_out ? n : k, 0, y, n);
    if (status != 0) fail(ErrorKind::kDevice, "onednn", "dnnl_sgemm returned status {}", status);
  }

 private:
  DnnlSgemm sgemm_;
};

void set_threads(void* library, int n_threads) {
  void* set =
      first_symbol(library, {"openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
                             "openblas_set_num_threads64_", "bli_thread_set_num_threads",
                             "MKL_Set_Num_Threads"});
  // Libraries over OpenMP ask its run time, which came with them.
  if (set == nullptr) set = first_symbol(library, {"omp_set_num_threads"});
  if (set == nullptr) set = first_symbol(RTLD_DEFAULT, {"omp_set_num_threads"});
  if (set != nullptr) reinterpret_cast<SetThreads>(set)(n_threads);
}

/// A handle and the path that was opened.
std::pair<void*, std::string> open_library(const Known& known, const std::string& given) {
  std::vector<std::string> paths;
  const char* variable = std::getenv(known.variable);
  if (!given.empty()) {
    paths = {given};
  } else if (variable != nullptr && *variable != '\0') {
    paths = {variable};
  } else {
    paths.assign(known.files.begin(), known.files.end());
  }
  std::string reason;
  for (const std::string& path : paths) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return {library, path};
    const char* error = dlerror();
    reason = error != nullptr ? error : "";
  }
  fail(ErrorKind::kUnsupported, "--compare",
       "{} is not there: tried {} ({}); give its file as {}=FILE or in {}", known.name,
       fmt::join(paths, ", "), reason, known.name, known.variable);
}

std::unique_ptr<Peer> open_peer(const std::string& entry, int n_threads) {
  const size_t equals = std::min(entry.find('='), entry.size());
  const std::string name = entry.substr(0, equals);
  const std::string given = equals < entry.size() ? entry.substr(equals + 1) : "";
  for (const Known& known : known_peers()) {
    if (known.name != name) continue;
    // Never closed: such libraries keep threads.
    const auto [library, path] = open_library(known, given);
    set_threads(library, n_threads);
    if (void* sgemm = first_symbol(library, {"dnnl_sgemm"})) {
      return std::make_unique<OneDnn>(name, path, sgemm);
    }
    if (void* sgemm = first_symbol(library, {"scipy_cblas_sgemm64_", "cblas_sgemm64_"})) {
      return std::make_unique<Blas<int64_t>>(name, path, sgemm);
    }
    if (void* sgemm = first_symbol(library, {"cblas_sgemm", "scipy_cblas_sgemm"})) {
      return std::make_unique<Blas<int32_t>>(name, path, sgemm);
    }
    fail(ErrorKind::kUnsupported, "--compare", "{} has neither cblas_sgemm nor dnnl_sgemm", path);
  }
  std::vector<const char*> names;
  for (const Known& known : known_peers()) names.push_back(known.name);
  fail(ErrorKind::kInvalidArgument, "--compare", "expected a list of {}, got '{}'",
       fmt::join(names, ", "), name);
}

}  // namespace

std::vector<std::unique_ptr<Peer>> open_peers(const std::string& list, int n_threads) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (size_t at = 0; !list.empty() && at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    peers.push_back(open_peer(list.substr(at, end - at), n_threads));
    at = end + 1;
  }
  return peers;
}

}  // namespace tessera::bench
