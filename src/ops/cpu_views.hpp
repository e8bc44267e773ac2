#pragma once

// Arguments of CPU kernels: plain data, and functions with internal linkage (cpu/tier.hpp).

#include <stdint.h>

#include "cpu/tier.hpp"

namespace tessera {

/// [n_rows, n_cols] of some type; rows lie stride_bytes apart.
struct MatrixView {
  unsigned char* data;
  int64_t n_rows, n_cols, stride_bytes;
};

/// f32 [n_tokens, n_heads, head_dim]; heads are dense inside themselves only.
struct HeadsView {
  unsigned char* data;
  int64_t n_tokens, n_heads, head_dim, token_stride_bytes, head_stride_bytes;
};

/// f32 or f16 [n_pages, n_kv_heads, page_tokens, head_dim].
struct PagesView {
  unsigned char* data;
  int64_t page_tokens, page_stride_bytes, head_stride_bytes, slot_stride_bytes;
  bool f16;
};

/// Where each token of a batch belongs: its sequence (-1: padding), its position there, and the
/// pages of each sequence, u32 [n_sequences, max_pages]. (positions and sequences are contiguous.)
struct BatchView {
  const uint32_t* positions;
  const int32_t* sequences;
  MatrixView block_tables;
};

template <typename T>
static inline T* row_of(const MatrixView& view, int64_t i_row) {
  return reinterpret_cast<T*>(view.data + i_row * view.stride_bytes);
}

static inline float* head_of(const HeadsView& view, int64_t i_token, int64_t i_head) {
  return reinterpret_cast<float*>(view.data + i_token * view.token_stride_bytes +
                                  i_head * view.head_stride_bytes);
}

/// The head_dim values of one position of a sequence, in whatever type the pages have.
static inline unsigned char* slot_of(const PagesView& pages, int64_t i_page, int64_t i_kv_head,
                                     int64_t i_slot) {
  return pages.data + i_page * pages.page_stride_bytes + i_kv_head * pages.head_stride_bytes +
         i_slot * pages.slot_stride_bytes;
}

/// Rows in use: `live` may be null, for all of them.
static inline int64_t live_rows(const uint32_t* live, int64_t n_rows) {
  return live && *live < n_rows ? *live : n_rows;
}

static inline int64_t chunks_of(int64_t n, int64_t chunk) {
  return (n + chunk - 1) / chunk;
}
static inline int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

}  // namespace tessera
