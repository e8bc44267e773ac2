#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/queue.hpp"
#include "engine/batch.hpp"

namespace tessera {

/// Writes one JSON line for every tensor that an op of a step puts out:
///
///   {"step": 0, "index": 3, "op": "rmsnorm", "row": "...", "tensor": "y", "dtype": "f32",
///    "shape": [5, 576], "hash": "16 hex digits", "min": , "max": , "mean": , "l2": , "first":
///    [..]}
///
/// `index` counts ops within the step. `hash` is FNV-1a (64 bits) of the tensor's bytes; statistics
/// are of its values, null where they are not finite. Steps are recorded without padding while a
/// trace is on, so every row is live and devices can be compared line by line. Of the pages of the
/// KV pool only the rows that the step writes count, as [n_tokens, n_kv_heads, head_dim].
class TensorTrace final : public OpObserver {
 public:
  /// Throws Error{kIo}.
  explicit TensorTrace(const std::filesystem::path& path);

  void begin_step(const Batch& batch);
  void recorded(Queue& queue, const OpRecord& record) override;

 private:
  std::vector<std::byte> written_rows(const Tensor& pages) const;
  void write_line(const OpRecord& record, std::string_view name, DType dtype, const Shape& shape,
                  const std::vector<std::byte>& bytes);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  const Batch* batch_ = nullptr;
  int64_t step_ = -1;
  int64_t index_ = 0;
};

}  // namespace tessera
