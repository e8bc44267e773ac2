#include "webgpu/device.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"
#include "webgpu/adapter.hpp"
#include "webgpu/kind.hpp"
#include "webgpu/queue.hpp"
#include "webgpu/tuning.hpp"

namespace tessera::webgpu {
namespace {

constexpr int64_t kVec4Bytes = 16;
// Copies go in pieces of this size, so that staging memory does not grow with the model.
constexpr int64_t kPieceBytes = int64_t{16} << 20;
// The implementation holds a copy of everything written until the next submit.
constexpr int64_t kFlushBytes = int64_t{128} << 20;

Caps make_caps(const std::string& name, const Capabilities& capabilities) {
  Caps caps;
  caps.kind = "webgpu";
  caps.name = name;
  caps.alignment_bytes = std::max<int64_t>(capabilities.storage_alignment_bytes, 64);
  caps.asynchronous = true;
  caps.finite_math = true;
  caps.features = capabilities.to_strings();
  return caps;
}

}  // namespace

GpuDevice::GpuDevice(int adapter_index, const ContextOptions& options)
    : context_(adapter_index, options),
      caps_(make_caps(context_.name(), context_.capabilities())) {}

GpuDevice::~GpuDevice() = default;

std::unique_ptr<Buffer> GpuDevice::allocate(int64_t size_bytes) {
  const int64_t bindable = round_up(std::max<int64_t>(size_bytes, kVec4Bytes), kVec4Bytes);
  BufferHandle handle = context_.make_buffer(
      "tensor", bindable,
      WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  return std::make_unique<GpuBuffer>(*this, size_bytes, std::move(handle), bindable);
}

void GpuDevice::write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  TESSERA_DCHECK(offset_bytes >= 0 && offset_bytes + size <= buffer.size_bytes());
  if (bytes.empty()) return;
  context_.take_error().value();
  // WebGPU writes whole words: bytes around a ragged range are read first and written back.
  const int64_t begin = offset_bytes / 4 * 4;
  const int64_t end = round_up<int64_t>(offset_bytes + size, 4);
  std::vector<std::byte> widened;
  if (begin != offset_bytes || end != offset_bytes + size) {
    widened.resize(static_cast<size_t>(end - begin));
    const auto keep_word = [&](int64_t at) {
      const auto n = static_cast<size_t>(std::min<int64_t>(4, buffer.size_bytes() - at));
      read(buffer, at, std::span(widened).subspan(static_cast<size_t>(at - begin), n));
    };
    if (begin != offset_bytes) keep_word(begin);
    if (end != offset_bytes + size && end <= buffer.size_bytes()) keep_word(end - 4);
    std::copy(bytes.begin(), bytes.end(), widened.begin() + (offset_bytes - begin));
    bytes = widened;
  }
  const WGPUBuffer handle = static_cast<GpuBuffer&>(buffer).handle();
  for (int64_t at = begin; at < end; at += kPieceBytes) {
    const int64_t n = std::min(kPieceBytes, end - at);
    wgpuQueueWriteBuffer(context_.queue(), handle, static_cast<uint64_t>(at),
                         bytes.data() + (at - begin), static_cast<size_t>(n));
    unflushed_bytes_ += n;
    if (unflushed_bytes_ >= kFlushBytes) flush_writes();
  }
}

void GpuDevice::flush_writes() {
  wgpuQueueSubmit(context_.queue(), 0, nullptr);
  context_.wait();
  unflushed_bytes_ = 0;
  context_.take_error().value();
}

void GpuDevice::read_aligned(WGPUBuffer from, int64_t offset_bytes, int64_t size_bytes,
                             const std::function<void(const std::byte*)>& use) {
  const auto size = static_cast<uint64_t>(size_bytes);
  const CommandEncoder encoder(wgpuDeviceCreateCommandEncoder(context_.device(), nullptr));
  wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), from, static_cast<uint64_t>(offset_bytes),
                                       staging_.get(), 0, size);
  const CommandBuffer commands(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  const WGPUCommandBuffer list[] = {commands.get()};
  wgpuQueueSubmit(context_.queue(), 1, list);
  unflushed_bytes_ = 0;
  struct Reply {
    bool mapped = false;
    std::string message;
  } reply;
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = &reply;
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto& to = *static_cast<Reply*>(user);
    to.mapped = status == WGPUMapAsyncStatus_Success;
    to.message = text(message);
  };
  wgpuBufferMapAsync(staging_.get(), WGPUMapMode_Read, 0, static_cast<size_t>(size), callback);
  context_.wait();
  const Status status = context_.take_error();
  if (reply.mapped && status.ok()) {
    use(static_cast<const std::byte*>(
        wgpuBufferGetConstMappedRange(staging_.get(), 0, static_cast<size_t>(size))));
  }
  if (reply.mapped) wgpuBufferUnmap(staging_.get());
  Status(status).value();
  if (!reply.mapped) fail(ErrorKind::kDevice, caps_.name, "reading back failed: {}", reply.message);
}

void GpuDevice::read(const Buffer& buffer, int64_t offset_bytes, std::span<std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  TESSERA_DCHECK(offset_bytes >= 0 && offset_bytes + size <= buffer.size_bytes());
  if (bytes.empty()) return;
  context_.take_error().value();
  if (!staging_) {
    staging_ = context_.make_buffer("readback", kPieceBytes,
                                    WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  }
  const WGPUBuffer handle = static_cast<const GpuBuffer&>(buffer).handle();
  const int64_t begin = offset_bytes / 4 * 4, end = offset_bytes + size;
  for (int64_t at = begin; at < end; at += kPieceBytes) {
    const int64_t n = std::min(kPieceBytes, round_up<int64_t>(end - at, 4));
    read_aligned(handle, at, n, [&](const std::byte* mapped) {
      const int64_t from = std::max(at, offset_bytes), to = std::min(at + n, end);
      std::memcpy(bytes.data() + (from - offset_bytes), mapped + (from - at),
                  static_cast<size_t>(to - from));
    });
  }
}

std::unique_ptr<Queue> GpuDevice::make_queue(const KernelTable& table, Arena& arena) {
  return std::make_unique<GpuQueue>(*this, table, arena);
}

DeviceKind device_kind(std::function<void(KernelTable&, const Capabilities&)> add_rows) {
  DeviceKind kind;
  kind.name = "webgpu";
  kind.hint = "install a Vulkan loader (libvulkan1) and the GPU's driver, or use another device";
  kind.list = [] {
    std::vector<Caps> list;
    for (const Adapter& adapter : adapters()) {
      list.push_back(make_caps(adapter.name, adapter.capabilities));
    }
    return list;
  };
  kind.make = [](int index, const DeviceOptions& options) -> std::unique_ptr<Device> {
    return std::make_unique<GpuDevice>(
        index,
        ContextOptions{.default_limits = options.default_limits,
                       .runtime_checks = options.runtime_checks,
                       .tuning = options.tuning < 0
                                     ? nullptr
                                     : &single_tunings().at(static_cast<size_t>(options.tuning))});
  };
  kind.n_tunings = [] { return static_cast<int>(single_tunings().size()); };
  kind.make_table = [add_rows](const Device& device, const DeviceOptions&) {
    KernelTable table;
    add_rows(table, static_cast<const GpuDevice&>(device).capabilities());
    return table;
  };
  return kind;
}

}  // namespace tessera::webgpu
