#include "conformance.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/thread_team.hpp"
#include "cpu/device.hpp"
#include "tensor/convert.hpp"

namespace tessera::conformance {
namespace {

constexpr std::byte kPoison{0xff};  // a NaN in every float type, no valid id in the others
constexpr int64_t kGuardBytes = 256;

int64_t element_alignment(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 1;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
    case DType::kQ8:
    case DType::kInt4Flat:
      return 4;
    case DType::kF64:
      return 8;
    default:
      return 2;  // 16-bit floats, and blocks, whose widest member is one
  }
}

/// Kernels may count on no more than the element's own alignment.
int64_t offset_in_buffer(const Tensor& tensor) {
  return kGuardBytes + element_alignment(tensor.dtype);
}

/// Gives the arena memory that is full of NaN, so that scratch used before it is written shows.
class PoisonedMemory final : public Device {
 public:
  explicit PoisonedMemory(Device& device) : device_(device) {}
  const Caps& caps() const override { return device_.caps(); }
  std::unique_ptr<Buffer> allocate(int64_t size_bytes) override {
    auto buffer = device_.allocate(size_bytes);
    device_.write(*buffer, 0, std::vector<std::byte>(static_cast<size_t>(size_bytes), kPoison));
    return buffer;
  }
  std::unique_ptr<Buffer> wrap_host(std::span<const std::byte>) override { return nullptr; }
  void write(Buffer& buffer, int64_t offset, std::span<const std::byte> bytes) override {
    device_.write(buffer, offset, bytes);
  }
  void read(const Buffer& buffer, int64_t offset, std::span<std::byte> bytes) override {
    device_.read(buffer, offset, bytes);
  }
  std::unique_ptr<Queue> make_queue(const KernelTable& table, Arena& arena) override {
    return device_.make_queue(table, arena);
  }

 private:
  Device& device_;
};

std::vector<std::byte> initial_image(const Operand& operand) {
  const int64_t begin = offset_in_buffer(operand.tensor);
  std::vector<std::byte> image(
      static_cast<size_t>(begin + static_cast<int64_t>(operand.bytes.size()) + kGuardBytes),
      kPoison);
  std::copy(operand.bytes.begin(), operand.bytes.end(), image.begin() + begin);
  return image;
}

std::string coordinates(const Tensor& tensor, int64_t index) {
  std::string text;
  for (int d = tensor.shape.rank() - 1; d >= 0; --d) {
    text = std::to_string(index % tensor.shape[d]) + (text.empty() ? "" : ", ") + text;
    index /= tensor.shape[d];
  }
  return "[" + text + "]";
}

/// The value as the type stores it.
double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kF16:
      return static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(value))));
    case DType::kBF16:
      return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
    default:
      return value;
  }
}

/// Error as a share of what is allowed; above 1 is wrong.
double share_of_bound(DType dtype, double got, double expected, double allowed) {
  const double stored = rounded(dtype, expected);
  if (std::isnan(stored) || std::isnan(got)) {
    return std::isnan(stored) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == stored) return 0;
  const double error = std::abs(got - expected);
  if (!(error <= allowed)) {
    return allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity();
  }
  return allowed > 0 ? error / allowed : 0;
}

std::string compare_quantised(const Operand& operand, const Expected& expected,
                              std::span<const std::byte> bytes) {
  const auto row_size =
      static_cast<size_t>(row_bytes(operand.tensor.dtype, operand.tensor.shape[-1]).value_or(0));
  std::string wrong;
  for_each_row(operand.tensor, [&](int64_t i, int64_t offset) {
    for (size_t k = 0; wrong.empty() && k < row_size; ++k) {
      const auto got = bytes[static_cast<size_t>(offset) + k];
      const auto want = expected.q8[static_cast<size_t>(i) * row_size + k];
      if (got == want) continue;
      wrong = fmt::format("{} row {} byte {}: got {:#04x}, expected {:#04x}", operand.name, i, k,
                          static_cast<int>(got), static_cast<int>(want));
    }
  });
  return wrong;
}

std::string compare_values(const Operand& operand, const Expected& expected,
                           std::span<const std::byte> bytes, double& largest_share) {
  const Tensor& tensor = operand.tensor;
  const std::vector<double> got = decode(tensor, bytes);
  const auto size = static_cast<size_t>(info(tensor.dtype).block_bytes);
  const int64_t columns = tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
  double worst = 1;
  int64_t n_wrong = 0;
  std::string text;
  for_each_row(tensor, [&](int64_t row, int64_t offset) {
    for (int64_t column = 0; column < columns; ++column) {
      const auto i = static_cast<size_t>(row * columns + column);
      const size_t at = static_cast<size_t>(offset) + static_cast<size_t>(column) * size;
      const bool touched = std::memcmp(&bytes[at], &operand.bytes[at], size) != 0;
      if (!expected.written[i] || (operand.access == Access::kWrite && !touched)) {
        if (expected.written[i] == touched) continue;
        if (++n_wrong == 1) {
          worst = std::numeric_limits<double>::infinity();
          text = fmt::format(
              "{}{} was {}", operand.name, coordinates(tensor, static_cast<int64_t>(i)),
              touched ? "written but may not be" : "not written, or is NaN from poisoned memory");
        }
        continue;
      }
      if (!expected.unchecked.empty() && expected.unchecked[i]) continue;
      const double share =
          share_of_bound(tensor.dtype, got[i], expected.values[i], expected.allowed[i]);
      largest_share = std::max(largest_share, share);
      if (share <= 1) continue;
      ++n_wrong;
      if (share <= worst && n_wrong > 1) continue;
      worst = share;
      text = fmt::format("{}{}: got {:.9g}, expected {:.9g}, off by {:.3g}, allowed {:.3g}",
                         operand.name, coordinates(tensor, static_cast<int64_t>(i)), got[i],
                         expected.values[i], std::abs(got[i] - expected.values[i]),
                         expected.allowed[i]);
    }
  });
  return n_wrong == 0 ? "" : fmt::format("{} ({} elements wrong)", text, n_wrong);
}

/// Bytes that no row may change: everything but the values of the output.
std::string compare_surroundings(const Operand& operand, std::span<const std::byte> image) {
  std::vector<std::byte> before = initial_image(operand);
  const int64_t begin = offset_in_buffer(operand.tensor);
  if (operand.access != Access::kRead && operand.tensor.shape.count() > 0) {
    const int64_t columns = operand.tensor.shape.rank() == 0 ? 1 : operand.tensor.shape[-1];
    const auto size = row_bytes(operand.tensor.dtype, columns).value_or(0);
    for_each_row(operand.tensor, [&](int64_t, int64_t offset) {
      std::copy_n(image.begin() + begin + offset, size, before.begin() + begin + offset);
    });
  }
  const auto [changed, original] = std::mismatch(image.begin(), image.end(), before.begin());
  if (changed == image.end()) return "";
  return fmt::format(
      "{}: byte {} of {} was overwritten ({})", operand.name, changed - image.begin() - begin,
      operand.bytes.size(),
      operand.access == Access::kRead ? "an input or its guard band" : "padding or guard band");
}

}  // namespace

Harness make_harness(const DeviceKind& kind, int index, const DeviceOptions& options) {
  const int n_threads = options.n_threads > 0 ? options.n_threads : available_cpus();
  const auto make_side = [&](int threads) {
    DeviceOptions own = options;
    own.n_threads = threads;
    Harness::Side side;
    side.device = kind.make(index, own);
    side.table = kind.make_table(*side.device, own);
    side.table.allow_reference(true);
    return side;
  };
  Harness harness = {make_side(n_threads), {}};
  // A device without threads, such as a GPU, would only compile every kernel twice.
  const bool threaded = harness.main.device->caps().parallelism == n_threads;
  if (threaded) harness.other = make_side(n_threads == 1 ? 3 : 1);
  return harness;
}

Images execute(Harness::Side& side, std::span<const Operand> operands, const Record& record) {
  Device& device = *side.device;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Tensor> tensors;
  Images before;
  for (const Operand& operand : operands) {
    before.push_back(initial_image(operand));
    buffers.push_back(device.allocate(static_cast<int64_t>(before.back().size())));
    tensors.push_back(operand.tensor);
    tensors.back().buffer = buffers.back().get();
    tensors.back().offset_bytes = offset_in_buffer(operand.tensor);
  }
  PoisonedMemory memory(device);
  Arena arena(memory);
  PlanQueue plan(device, side.table, arena);
  plan.begin();
  record(plan, tensors);
  plan.end();
  arena.allocate();
  const auto queue = device.make_queue(side.table, arena);
  queue->begin();
  record(*queue, tensors);
  const std::unique_ptr<Step> step = queue->end();

  const auto run = [&] {
    for (size_t i = 0; i < buffers.size(); ++i) device.write(*buffers[i], 0, before[i]);
    queue->submit(*step);
    queue->wait().value();
    Images after = before;
    for (size_t i = 0; i < buffers.size(); ++i) device.read(*buffers[i], 0, after[i]);
    return after;
  };
  Images first = run();
  const std::string wrong = difference(operands, first, run());
  if (!wrong.empty()) fail(ErrorKind::kDevice, "second run of the same step", "{}", wrong);
  return first;
}

ReferenceRun::ReferenceRun(std::span<const Operand> operands)
    : device_(std::make_unique<cpu::CpuDevice>(DeviceOptions{.n_threads = 1, .isa = ""},
                                               cpu::CpuDevice::Memory::kShared)) {
  for (const Operand& operand : operands) {
    const bool widen = operand.tensor.dtype == DType::kF32;
    const DType dtype = widen ? DType::kF64 : operand.tensor.dtype;
    Tensor tensor = Tensor::dense(dtype, operand.tensor.shape);
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.span_bytes()), kPoison);
    if (operand.access != Access::kWrite && widen) {
      const std::vector<double> values = decode(operand.tensor, operand.bytes);
      if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    } else if (operand.access != Access::kWrite && !bytes.empty()) {
      const size_t row_size = bytes.size() / static_cast<size_t>(tensor.n_rows());
      for_each_row(operand.tensor, [&](int64_t i, int64_t offset) {
        std::memcpy(&bytes[static_cast<size_t>(i) * row_size],
                    &operand.bytes[static_cast<size_t>(offset)], row_size);
      });
    }
    buffers_.push_back(device_->allocate(std::max<int64_t>(tensor.span_bytes(), 1)));
    device_->write(*buffers_.back(), 0, bytes);
    tensor.buffer = buffers_.back().get();
    tensors_.push_back(tensor);
  }
}

std::vector<Expected> ReferenceRun::expected(std::span<const Operand> operands,
                                             const CaseInputs& inputs, const Bound& bound) const {
  std::vector<Expected> result(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.access == Access::kRead) continue;
    Expected& expected = result[i];
    std::vector<std::byte> bytes = read_tensor(tensors_[i]);
    if (operand.tensor.dtype == DType::kQ8) {
      expected.q8 = std::move(bytes);
      continue;
    }
    expected.values = decode(tensors_[i], bytes);
    expected.written.resize(expected.values.size());
    const auto size = static_cast<size_t>(info(tensors_[i].dtype).block_bytes);
    const std::vector<double>* before =
        operand.access == Access::kReadWrite ? &inputs[operand.name].values : nullptr;
    for (size_t k = 0; k < expected.values.size(); ++k) {
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(k * size);
      const bool untouched = std::all_of(first, first + static_cast<std::ptrdiff_t>(size),
                                         [](std::byte byte) { return byte == kPoison; });
      expected.written[k] = !untouched && (before == nullptr || (*before)[k] != expected.values[k]);
    }
    expected.allowed = bound(inputs, operand.name, expected.values);
    if (expected.allowed.size() != expected.values.size()) {
      fail(ErrorKind::kInvalidArgument, operand.name,
           "the error model gave {} bounds for {} values", expected.allowed.size(),
           expected.values.size());
    }
  }
  return result;
}

void accept_any_value_for_non_finite(const CaseInputs& inputs, std::vector<Expected>& expected) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const bool finite_inputs =
      std::all_of(inputs.tensors.begin(), inputs.tensors.end(), [&](const auto& input) {
        return std::all_of(input.second.values.begin(), input.second.values.end(), finite);
      });
  for (Expected& output : expected) {
    output.unchecked.resize(output.values.size());
    for (size_t i = 0; i < output.values.size(); ++i) {
      output.unchecked[i] = !finite_inputs || !finite(output.values[i]);
    }
  }
}

CaseInputs case_inputs(std::span<const Operand> operands) {
  CaseInputs inputs;
  for (const Operand& operand : operands) {
    if (operand.access == Access::kWrite) continue;
    inputs.tensors[operand.name] = {operand.tensor.shape, decode(operand.tensor, operand.bytes)};
  }
  return inputs;
}

std::string compare(std::span<const Operand> operands, std::span<const Expected> expected,
                    const Images& images, double& largest_share) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    std::string wrong = compare_surroundings(operand, images[i]);
    if (wrong.empty() && operand.access != Access::kRead && operand.tensor.shape.count() > 0) {
      const auto bytes = output_bytes(operand, images[i]);
      wrong = operand.tensor.dtype == DType::kQ8
                  ? compare_quantised(operand, expected[i], bytes)
                  : compare_values(operand, expected[i], bytes, largest_share);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string difference(std::span<const Operand> operands, const Images& a, const Images& b) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto [left, right] = std::mismatch(a[i].begin(), a[i].end(), b[i].begin());
    if (left == a[i].end()) continue;
    const Tensor& tensor = operands[i].tensor;
    const int64_t byte = left - a[i].begin() - offset_in_buffer(tensor);
    if (tensor.is_dense() && info(tensor.dtype).block_size == 1 && byte >= 0 &&
        byte < tensor.span_bytes()) {
      return operands[i].name + coordinates(tensor, byte / info(tensor.dtype).block_bytes);
    }
    return fmt::format("{} byte {}", operands[i].name, byte);
  }
  return "";
}

std::span<const std::byte> output_bytes(const Operand& operand, std::span<const std::byte> image) {
  return image.subspan(static_cast<size_t>(offset_in_buffer(operand.tensor)), operand.bytes.size());
}

uint64_t seed_of(std::string_view case_name, std::string_view tensor) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::string_view part : {case_name, tensor}) {
    for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  }
  return hash;
}

}  // namespace tessera::conformance
