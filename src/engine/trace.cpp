#include "engine/trace.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "engine/kv_pool.hpp"
#include "tensor/convert.hpp"

namespace tessera {
namespace {

uint64_t fnv1a(const std::vector<std::byte>& bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
  return hash;
}

/// A row of q8 is f32 scales [K / 32], f32 sums [K / 32], int8 values [K] (ops/quantize).
void append_q8_row(const std::byte* row, int64_t n_values, std::vector<double>& values) {
  const int64_t n_blocks = n_values / 32;
  for (int64_t i = 0; i < n_values; ++i) {
    float scale = 0;
    std::memcpy(&scale, row + i / 32 * 4, sizeof scale);
    values.push_back(scale * static_cast<double>(static_cast<int8_t>(row[n_blocks * 8 + i])));
  }
}

std::vector<double> decode(DType dtype, const Shape& shape, const std::vector<std::byte>& bytes) {
  std::vector<double> values;
  const auto count = static_cast<size_t>(shape.count());
  values.reserve(count);
  if (dtype == DType::kU32 || dtype == DType::kI32) {
    for (size_t i = 0; i < count; ++i) {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * 4, sizeof value);
      values.push_back(dtype == DType::kU32 ? static_cast<uint32_t>(value) : value);
    }
  } else if (dtype == DType::kQ8) {
    const int64_t row = row_bytes(dtype, shape[-1]).value_or(0);
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(row)) {
      append_q8_row(bytes.data() + at, shape[-1], values);
    }
  } else {
    std::vector<float> floats(count);
    dequantize(dtype, bytes.data(), floats.data(), shape.count());
    values.assign(floats.begin(), floats.end());
  }
  return values;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "null";
}

}  // namespace

TensorTrace::TensorTrace(const std::filesystem::path& path)
    : path_(path.string()), file_(std::fopen(path.c_str(), "w")) {
  if (!file_) fail(ErrorKind::kIo, path_, "cannot write the trace: {}", std::strerror(errno));
}

void TensorTrace::begin_step(const Batch& batch) {
  batch_ = &batch;
  index_ = 0;
  ++step_;
}

void TensorTrace::recorded(Queue& queue, const OpRecord& record) {
  const std::unique_ptr<Step> partial = queue.end();
  queue.submit(*partial);
  queue.wait().value();
  for (const auto& [name, tensor] : record.outputs) {
    if (name.ends_with("_pages")) {
      const Shape rows = {batch_->n_tokens(), tensor.dim(1), tensor.dim(3)};
      write_line(record, name, tensor.dtype, rows, written_rows(tensor));
    } else {
      write_line(record, name, tensor.dtype, tensor.shape, read_tensor(tensor));
    }
  }
  ++index_;
  queue.begin();
}

std::vector<std::byte> TensorTrace::written_rows(const Tensor& pages) const {
  std::vector<std::byte> rows;
  for (size_t token = 0; token < batch_->positions().size(); ++token) {
    const Tensor page = pages.slice(batch_->page_of(token), 1);
    const int64_t slot = batch_->positions()[token] % kPageTokens;
    for (int64_t head = 0; head < pages.dim(1); ++head) {
      Tensor row = page.reshaped({pages.dim(1) * kPageTokens, pages.dim(3)});
      row = row.slice(head * kPageTokens + slot, 1);
      const std::vector<std::byte> bytes = read_tensor(row);
      rows.insert(rows.end(), bytes.begin(), bytes.end());
    }
  }
  return rows;
}

void TensorTrace::write_line(const OpRecord& record, std::string_view name, DType dtype,
                             const Shape& shape, const std::vector<std::byte>& bytes) {
  const std::vector<double> values = decode(dtype, shape, bytes);
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(values.size());
  std::vector<std::string> first;
  for (size_t i = 0; i < std::min<size_t>(values.size(), 4); ++i)
    first.push_back(number(values[i]));
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const bool any = !values.empty();
  fmt::print(file_.get(),
             "{{\"step\": {}, \"index\": {}, \"op\": \"{}\", \"row\": \"{}\", \"tensor\": \"{}\", "
             "\"dtype\": \"{}\", \"shape\": {}, \"hash\": \"{:016x}\", \"min\": {}, \"max\": {}, "
             "\"mean\": {}, \"l2\": {}, \"first\": [{}]}}\n",
             step_, index_, record.op, record.row, name, tessera::name(dtype), shape.to_string(),
             fnv1a(bytes), any ? number(*min) : "null", any ? number(*max) : "null",
             any ? number(sum / n) : "null", number(std::sqrt(squares)), fmt::join(first, ", "));
  if (std::fflush(file_.get()) != 0) {
    fail(ErrorKind::kIo, path_, "cannot write the trace: {}", std::strerror(errno));
  }
}

}  // namespace tessera
