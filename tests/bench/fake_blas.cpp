// A library with the interface of OpenBLAS, for the tests of --compare.

extern "C" {

void openblas_set_num_threads(int) {}

void cblas_sgemm(int, int, int transpose_b, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        const float right = transpose_b == 112 ? b[j * ldb + l] : b[l * ldb + j];
        sum += double{a[i * lda + l]} * double{right};
      }
      float& value = c[i * ldc + j];
      value = alpha * static_cast<float>(sum) + (beta == 0 ? 0 : beta * value);
    }
  }
}
}
