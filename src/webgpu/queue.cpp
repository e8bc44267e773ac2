#include "webgpu/queue.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"
#include "webgpu/native.hpp"

namespace tessera::webgpu {
namespace {

constexpr int64_t kMinStorageBytes = 16;  // a vec4, the largest element that kernels bind arrays of

/// The part of a tensor's buffer that a kernel sees.
struct Range {
  int64_t begin, size;
};

Range bound_range(const Tensor& tensor, const Capabilities& capabilities) {
  const auto& buffer = static_cast<const GpuBuffer&>(*tensor.buffer);
  const int64_t begin = tensor.offset_bytes / capabilities.storage_alignment_bytes *
                        capabilities.storage_alignment_bytes;
  const int64_t end = round_up(tensor.offset_bytes + tensor.span_bytes(), kMinStorageBytes);
  const int64_t size = std::max(std::min(end, buffer.bindable_bytes()) - begin, kMinStorageBytes);
  if (begin + size <= buffer.bindable_bytes()) return {begin, size};
  return {0, buffer.bindable_bytes()};  // an empty tensor at the very end: any bytes will do
}

}  // namespace

const Capabilities& capabilities_of(Queue& queue) {
  return static_cast<GpuDevice&>(queue.device()).capabilities();
}

int64_t first_element(const Tensor& tensor, const Capabilities& capabilities) {
  const int64_t before = tensor.offset_bytes % capabilities.storage_alignment_bytes;
  const int64_t element_bytes = info(tensor.dtype).block_bytes;
  if (before % element_bytes != 0) {
    fail(
        ErrorKind::kUnsupported, "webgpu",
        "a tensor starts {} bytes behind a multiple of {}, expected a multiple of its element's {} "
        "bytes",
        before, capabilities.storage_alignment_bytes, element_bytes);
  }
  return before / element_bytes;
}

Grid fold(int64_t n, const Capabilities& capabilities) {
  if (n <= capabilities.max_grid) return {.x = n};
  const int64_t n_rows = ceil_div(n, capabilities.max_grid);
  return {.x = ceil_div(n, n_rows), .y = n_rows};
}

void record(Queue& queue, std::string_view label, const Kernel& kernel,
            std::span<const Binding> bindings, std::span<const std::byte> uniform_bytes,
            const Grid& grid) {
  static_cast<GpuQueue&>(queue).record(label, kernel, bindings, uniform_bytes, grid);
}

GpuQueue::GpuQueue(GpuDevice& device, const KernelTable& table, Arena& arena)
    : Queue(device, table, arena), gpu_(device) {}

GpuQueue::~GpuQueue() = default;

void GpuQueue::begin() {
  recorded_.clear();
  uniform_data_.clear();
}

void GpuQueue::check(std::string_view label, std::span<const Binding> bindings,
                     const Grid& grid) const {
  const Capabilities& limits = gpu_.capabilities();
  if (std::max({grid.x, grid.y, grid.z}) > limits.max_grid) {
    fail(ErrorKind::kUnsupported, std::string(label),
         "a grid of {} x {} x {} workgroups, expected at most {} each", grid.x, grid.y, grid.z,
         limits.max_grid);
  }
  int n_storage = 0;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].kind == BindingKind::kUniform) continue;
    ++n_storage;
    TESSERA_DCHECK(bindings[i].tensor.buffer != nullptr);
    const Range range = bound_range(bindings[i].tensor, limits);
    if (range.size > limits.max_binding_bytes) {
      fail(ErrorKind::kUnsupported, std::string(label),
           "binding {} has {} bytes, more than this device's limit of {} a binding", i, range.size,
           limits.max_binding_bytes);
    }
    for (size_t k = 0; k < i; ++k) {
      const bool written = bindings[i].kind == BindingKind::kReadWrite ||
                           bindings[k].kind == BindingKind::kReadWrite;
      if (written && bindings[k].tensor.buffer == bindings[i].tensor.buffer) {
        fail(
            ErrorKind::kInvalidArgument, std::string(label),
            "bindings {} and {} are one buffer and one of them is written: WebGPU allows that only "
            "as a single binding",
            k, i);
      }
    }
  }
  if (n_storage > limits.max_storage_buffers) {
    fail(ErrorKind::kUnsupported, std::string(label),
         "{} storage buffers, more than this device's limit of {}", n_storage,
         limits.max_storage_buffers);
  }
}

void GpuQueue::record(std::string_view label, const Kernel& kernel,
                      std::span<const Binding> bindings, std::span<const std::byte> uniform_bytes,
                      const Grid& grid) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check(label, bindings, grid);
  std::vector<BindingLayout> layout;
  for (const Binding& binding : bindings) {
    const bool is_uniform = binding.kind == BindingKind::kUniform;
    layout.push_back(
        {binding.kind, is_uniform ? static_cast<int64_t>(uniform_bytes.size()) : kMinStorageBytes});
  }
  const auto offset = round_up(static_cast<int64_t>(uniform_data_.size()),
                               gpu_.capabilities().uniform_alignment_bytes);
  recorded_.push_back({.pipeline = &gpu_.context().pipeline(kernel, layout),
                       .bindings = {bindings.begin(), bindings.end()},
                       .label = std::string(label),
                       .uniform_offset = offset,
                       .uniform_bytes = static_cast<int64_t>(uniform_bytes.size()),
                       .grid = grid});
  if (uniform_bytes.empty()) return;
  uniform_data_.resize(static_cast<size_t>(offset));
  uniform_data_.insert(uniform_data_.end(), uniform_bytes.begin(), uniform_bytes.end());
}

BindGroup GpuQueue::make_group(const Recorded& recorded, WGPUBuffer uniforms) const {
  std::vector<WGPUBindGroupEntry> entries;
  for (size_t i = 0; i < recorded.bindings.size(); ++i) {
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<uint32_t>(i);
    if (recorded.bindings[i].kind == BindingKind::kUniform) {
      entry.buffer = uniforms;
      entry.size = static_cast<uint64_t>(recorded.uniform_bytes);
    } else {
      const Tensor& tensor = recorded.bindings[i].tensor;
      const Range range = bound_range(tensor, gpu_.capabilities());
      entry.buffer = static_cast<const GpuBuffer&>(*tensor.buffer).handle();
      entry.offset = static_cast<uint64_t>(range.begin);
      entry.size = static_cast<uint64_t>(range.size);
    }
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.label = view(recorded.label);
  descriptor.layout = recorded.pipeline->layout.get();
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  return BindGroup(wgpuDeviceCreateBindGroup(gpu_.context().device(), &descriptor));
}

std::unique_ptr<Step> GpuQueue::end() {
  Context& context = gpu_.context();
  auto step = std::make_unique<GpuStep>();
  if (!uniform_data_.empty()) {
    uniform_data_.resize(round_up<size_t>(uniform_data_.size(), 4));
    step->uniforms = context.make_buffer("uniforms", static_cast<int64_t>(uniform_data_.size()),
                                         WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
    wgpuQueueWriteBuffer(context.queue(), step->uniforms.get(), 0, uniform_data_.data(),
                         uniform_data_.size());
  }
  for (const Recorded& recorded : recorded_) {
    GpuStep::Dispatch dispatch = {.pipeline = recorded.pipeline,
                                  .group = nullptr,
                                  .uniform_offset = std::nullopt,
                                  .x = static_cast<uint32_t>(recorded.grid.x),
                                  .y = static_cast<uint32_t>(recorded.grid.y),
                                  .z = static_cast<uint32_t>(recorded.grid.z)};
    dispatch.group =
        context.guarded(recorded.label, [&] { return make_group(recorded, step->uniforms.get()); });
    if (recorded.uniform_bytes > 0) {
      dispatch.uniform_offset = static_cast<uint32_t>(recorded.uniform_offset);
    }
    step->dispatches.push_back(std::move(dispatch));
  }
  begin();
  return step;
}

void GpuQueue::write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) {
  gpu_.write(buffer, offset_bytes, bytes);
}

void GpuQueue::copy(const Tensor& to, const Tensor& from) {
  TESSERA_DCHECK(to.span_bytes() == from.span_bytes() && from.span_bytes() % 4 == 0);
  copies_.emplace_back(to, from);
}

void GpuQueue::request(const Tensor& tensor) {
  const int64_t n_bytes = round_up<int64_t>(tensor.span_bytes(), 4);
  auto place = std::find_if(free_replies_.begin(), free_replies_.end(),
                            [&](const Reply& reply) { return reply.staging_bytes >= n_bytes; });
  if (place == free_replies_.end()) {
    place = free_replies_.emplace(free_replies_.end());
    place->staging = gpu_.context().make_buffer("readback", n_bytes,
                                                WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
    place->staging_bytes = n_bytes;
  }
  place->tensor = tensor;
  requested_.splice(requested_.end(), free_replies_, place);
}

void GpuQueue::map(Reply& reply) {
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = &reply;
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto& to = *static_cast<Reply*>(user);
    to.mapped = status == WGPUMapAsyncStatus_Success;
    to.message = text(message);
  };
  reply.mapped = false;
  wgpuBufferMapAsync(reply.staging.get(), WGPUMapMode_Read, 0,
                     static_cast<size_t>(reply.staging_bytes), callback);
}

Status GpuQueue::receive(std::span<std::byte> bytes) {
  TESSERA_DCHECK(!submitted_.empty());
  Reply& reply = submitted_.front();
  TESSERA_DCHECK(static_cast<int64_t>(bytes.size()) == reply.tensor.span_bytes());
  gpu_.context().wait_for(reply.submission);
  Status status = gpu_.context().take_error();
  if (reply.mapped) {
    std::memcpy(bytes.data(), wgpuBufferGetConstMappedRange(reply.staging.get(), 0, bytes.size()),
                bytes.size());
    wgpuBufferUnmap(reply.staging.get());
  } else if (status.ok()) {
    status = Error(ErrorKind::kDevice, gpu_.caps().name, "reading back failed: " + reply.message);
  }
  free_replies_.splice(free_replies_.begin(), submitted_, submitted_.begin());
  return status;
}

void GpuQueue::submit(const Step& step) {
  const auto& recorded = static_cast<const GpuStep&>(step);
  Context& context = gpu_.context();
  // What was asked for belongs to this step, even if it fails.
  const std::vector<std::pair<Tensor, Tensor>> copies = std::exchange(copies_, {});
  std::list<Reply> replies = std::exchange(requested_, {});
  context.take_error().value();
  const CommandEncoder encoder(wgpuDeviceCreateCommandEncoder(context.device(), nullptr));
  const auto encode_copy = [&](WGPUBuffer to, int64_t to_offset, const Tensor& from) {
    wgpuCommandEncoderCopyBufferToBuffer(
        encoder.get(), static_cast<const GpuBuffer&>(*from.buffer).handle(),
        static_cast<uint64_t>(from.offset_bytes), to, static_cast<uint64_t>(to_offset),
        static_cast<uint64_t>(round_up<int64_t>(from.span_bytes(), 4)));
  };
  for (const auto& [to, from] : copies) {
    encode_copy(static_cast<const GpuBuffer&>(*to.buffer).handle(), to.offset_bytes, from);
  }
  WGPUComputePassDescriptor descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
  descriptor.label = view("step");
  WGPUPassTimestampWrites timestamps = WGPU_PASS_TIMESTAMP_WRITES_INIT;
  if (queries_) {
    timestamps.querySet = queries_.get();
    timestamps.beginningOfPassWriteIndex = 0;
    timestamps.endOfPassWriteIndex = 1;
    descriptor.timestampWrites = &timestamps;
  }
  {
    const ComputePass pass(wgpuCommandEncoderBeginComputePass(encoder.get(), &descriptor));
    const Pipeline* current = nullptr;
    for (const GpuStep::Dispatch& dispatch : recorded.dispatches) {
      if (dispatch.pipeline != current) {
        wgpuComputePassEncoderSetPipeline(pass.get(), dispatch.pipeline->handle.get());
        current = dispatch.pipeline;
      }
      const uint32_t offset = dispatch.uniform_offset.value_or(0);
      wgpuComputePassEncoderSetBindGroup(pass.get(), 0, dispatch.group.get(),
                                         dispatch.uniform_offset ? 1 : 0, &offset);
      wgpuComputePassEncoderDispatchWorkgroups(pass.get(), dispatch.x, dispatch.y, dispatch.z);
    }
    wgpuComputePassEncoderEnd(pass.get());
  }
  if (queries_) {
    wgpuCommandEncoderResolveQuerySet(encoder.get(), queries_.get(), 0, 2,
                                      static_cast<GpuBuffer&>(*query_results_).handle(), 0);
  }
  for (const Reply& reply : replies) encode_copy(reply.staging.get(), 0, reply.tensor);
  const CommandBuffer commands(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  context.take_error().value();  // before the submit, which would abort the process
  const uint64_t submission = native::submit(context.queue(), commands.get());
  for (Reply& reply : replies) {
    reply.submission = submission;
    map(reply);
  }
  submitted_.splice(submitted_.end(), replies);
}

Status GpuQueue::wait() {
  gpu_.context().wait();
  return gpu_.context().take_error();
}

bool GpuQueue::enable_timing() {
  if (!gpu_.capabilities().timestamps) return false;
  WGPUQuerySetDescriptor descriptor = WGPU_QUERY_SET_DESCRIPTOR_INIT;
  descriptor.label = view("step time");
  descriptor.type = WGPUQueryType_Timestamp;
  descriptor.count = 2;
  Context& context = gpu_.context();
  queries_ = context.guarded("step time", [&] {
    return QuerySet(wgpuDeviceCreateQuerySet(context.device(), &descriptor));
  });
  constexpr int64_t kResultBytes = 2 * sizeof(uint64_t);
  query_results_ = std::make_unique<GpuBuffer>(
      gpu_, kResultBytes,
      context.make_buffer("step time", kResultBytes,
                          WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc),
      kResultBytes);
  return true;
}

double GpuQueue::step_ns() {
  TESSERA_DCHECK(query_results_ != nullptr);
  uint64_t ticks[2] = {};
  gpu_.read(*query_results_, 0, std::as_writable_bytes(std::span(ticks)));
  return static_cast<double>(ticks[1] - ticks[0]) * native::tick_ns(gpu_.context().queue());
}

}  // namespace tessera::webgpu
