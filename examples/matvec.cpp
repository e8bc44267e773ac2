// A matrix times a vector, with one chain of sums and with four AVX2 chains: how far apart they are
// where the matrix comes from memory and where it comes from a cache. One file, no dependencies:
//
//   g++ -O0 -mavx2 -mfma -o matvec_o0 matvec.cpp && ./matvec_o0
//   g++ -O3 -mavx2 -mfma -o matvec_o3 matvec.cpp && ./matvec_o3
//   cl /O2 /EHsc /std:c++17 /arch:AVX2 matvec.cpp
//   x86_64-w64-mingw32-g++ -O3 -mavx2 -mfma -static -o matvec.exe matvec.cpp
//
// usage: matvec [ROWS COLS]. Fails when the two disagree by 1e-3 or more.

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__) && (defined(__FMA__) || defined(_MSC_VER))
#define MATVEC_HAS_AVX2 1
#include <immintrin.h>
#else
#define MATVEC_HAS_AVX2 0
#endif

// `tessera bench matvec` includes the kernels once for each set of compiler flags.
#ifndef MATVEC_NAMESPACE
#define MATVEC_NAMESPACE matvec
#endif

namespace MATVEC_NAMESPACE {

/// y[rows] = W[rows, cols] x[cols]. Every sum waits for the one before it: compilers keep the order
/// unless -ffast-math lets them change it.
void matvec_naive(const float* W, const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i) {
    const float* row = W + static_cast<size_t>(i) * static_cast<size_t>(cols);
    float sum = 0;
    for (int j = 0; j < cols; ++j) sum += row[j] * x[j];
    y[i] = sum;
  }
}

/// The same with four chains of eight sums side by side. Without AVX2 in the compiler's flags it is
/// matvec_naive.
void matvec_avx2(const float* W, const float* x, float* y, int rows, int cols) {
#if MATVEC_HAS_AVX2
  for (int i = 0; i < rows; ++i) {
    const float* row = W + static_cast<size_t>(i) * static_cast<size_t>(cols);
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    int j = 0;
    for (; j + 32 <= cols; j += 32) {
      s0 = _mm256_fmadd_ps(_mm256_loadu_ps(row + j), _mm256_loadu_ps(x + j), s0);
      s1 = _mm256_fmadd_ps(_mm256_loadu_ps(row + j + 8), _mm256_loadu_ps(x + j + 8), s1);
      s2 = _mm256_fmadd_ps(_mm256_loadu_ps(row + j + 16), _mm256_loadu_ps(x + j + 16), s2);
      s3 = _mm256_fmadd_ps(_mm256_loadu_ps(row + j + 24), _mm256_loadu_ps(x + j + 24), s3);
    }
    const __m256 eight = _mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    float sum = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
    for (; j < cols; ++j) sum += row[j] * x[j];
    y[i] = sum;
  }
#else
  matvec_naive(W, x, y, rows, cols);
#endif
}

/// Values in [-0.5, 0.5), always the same for a seed: xorshift32.
void fill(float* values, size_t count, uint32_t seed) {
  uint32_t state = seed;
  for (size_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    values[i] = static_cast<float>(state >> 8) * (1.0f / 16777216.0f) - 0.5f;
  }
}

}  // namespace MATVEC_NAMESPACE

#ifndef MATVEC_WITHOUT_MAIN

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Kernel = void (*)(const float*, const float*, float*, int, int);

double milliseconds_of(Kernel kernel, const std::vector<float>& W, const std::vector<float>& x,
                       std::vector<float>& y) {
  constexpr int kRuns = 20;
  const int rows = static_cast<int>(y.size()), cols = static_cast<int>(x.size());
  kernel(W.data(), x.data(), y.data(), rows, cols);
  const auto start = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; ++run) kernel(W.data(), x.data(), y.data(), rows, cols);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  return elapsed.count() / kRuns;
}

/// False when the kernels disagree.
bool compare(int rows, int cols) {
  using namespace MATVEC_NAMESPACE;
  const size_t n_rows = static_cast<size_t>(rows), n_cols = static_cast<size_t>(cols);
  std::vector<float> W(n_rows * n_cols), x(n_cols), y_naive(n_rows), y_avx2(n_rows);
  fill(W.data(), W.size(), 12345);
  fill(x.data(), x.size(), 67890);
  const double naive_ms = milliseconds_of(matvec_naive, W, x, y_naive);
  const double avx2_ms = milliseconds_of(matvec_avx2, W, x, y_avx2);
  float difference = 0;
  for (size_t i = 0; i < n_rows; ++i) {
    difference = std::fmax(difference, std::fabs(y_naive[i] - y_avx2[i]));
  }
  const double bytes = static_cast<double>(W.size() + x.size()) * sizeof(float);
  std::printf(
      "%dx%d, %.1f MiB: naive %.3f ms, %.1f GB/s; %s %.3f ms, %.1f GB/s; %.2fx; "
      "largest difference %.1e\n",
      rows, cols, bytes / (1 << 20), naive_ms, bytes / naive_ms * 1e-6,
      MATVEC_HAS_AVX2 ? "avx2" : "no avx2 in this build, naive again", avx2_ms,
      bytes / avx2_ms * 1e-6, naive_ms / avx2_ms, static_cast<double>(difference));
  return difference < 1e-3f;
}

}  // namespace

int main(int argc, char** argv) {
#if MATVEC_HAS_AVX2 && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::fprintf(stderr, "matvec: this CPU has no AVX2; build without -mavx2 -mfma\n");
    return 1;
  }
#endif
  bool agree = true;
  if (argc == 3) {
    const int rows = std::atoi(argv[1]), cols = std::atoi(argv[2]);
    if (rows < 1 || cols < 1) {
      std::fprintf(stderr, "matvec: expected positive ROWS and COLS\n");
      return 2;
    }
    agree = compare(rows, cols);
  } else {
    agree = compare(4096, 4096);           // 64 MiB: from memory
    agree = compare(1448, 1448) && agree;  // 8 MiB: from a cache
  }
  if (!agree) std::fprintf(stderr, "matvec: the kernels disagree\n");
  return agree ? 0 : 1;
}

#endif
