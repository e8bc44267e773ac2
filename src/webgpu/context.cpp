#include "webgpu/context.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "webgpu/adapter.hpp"
#include "webgpu/native.hpp"
#include "webgpu/tuning.hpp"
#include "webgpu/wgsl.hpp"

namespace tessera::webgpu {
namespace {

/// The standard's default limits: what is left undefined here is asked for at its default.
WGPULimits default_limits() {
  WGPULimits limits = WGPU_LIMITS_INIT;
  return limits;
}

std::vector<WGPUFeatureName> wanted_features(WGPUAdapter adapter) {
  const WGPUFeatureName wanted[] = {WGPUFeatureName_ShaderF16, WGPUFeatureName_Subgroups,
                                    WGPUFeatureName_TimestampQuery, native::kSubgroups};
  WGPUSupportedFeatures offered = {};
  wgpuAdapterGetFeatures(adapter, &offered);
  std::vector<WGPUFeatureName> features;
  for (size_t i = 0; i < offered.featureCount; ++i) {
    const WGPUFeatureName feature = offered.features[i];
    if (std::find(std::begin(wanted), std::end(wanted), feature) != std::end(wanted)) {
      features.push_back(feature);
    }
  }
  wgpuSupportedFeaturesFreeMembers(offered);
  return features;
}

ErrorKind kind_of(WGPUErrorType type) {
  return type == WGPUErrorType_OutOfMemory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice;
}

// wgpu-native panics on a scope for internal errors; those arrive as uncaptured ones.
constexpr WGPUErrorFilter kFilters[] = {WGPUErrorFilter_Validation, WGPUErrorFilter_OutOfMemory};

}  // namespace

Context::Context(int adapter_index, const ContextOptions& options) : options_(options) {
  const std::vector<Adapter>& found = adapters();
  if (found.empty()) {
    fail(
        ErrorKind::kUnsupported, "webgpu",
        "no adapter found: install a Vulkan loader (libvulkan1) and driver, or use another device");
  }
  if (adapter_index < 0 || static_cast<size_t>(adapter_index) >= found.size()) {
    fail(ErrorKind::kInvalidArgument, "webgpu",
         "there is no adapter {} among {}; `tessera doctor` lists them", adapter_index,
         found.size());
  }
  const Adapter& adapter = found[static_cast<size_t>(adapter_index)];
  name_ = adapter.name;
  request_device(adapter.handle, options.default_limits ? default_limits() : adapter.limits);
  WGPULimits limits = {};
  wgpuDeviceGetLimits(device_.get(), &limits);
  WGPUSupportedFeatures features = {};
  wgpuDeviceGetFeatures(device_.get(), &features);
  capabilities_ = capabilities_of(limits, features);
  wgpuSupportedFeaturesFreeMembers(features);
  capabilities_.tuning = options.tuning ? options.tuning : &tuning_for(name_);
}

Context::~Context() {
  const std::lock_guard lock(error_mutex_);
  closing_ = true;
}

void Context::request_device(WGPUAdapter adapter, const WGPULimits& limits) {
  const std::vector<WGPUFeatureName> features =
      options_.default_limits ? std::vector<WGPUFeatureName>{} : wanted_features(adapter);
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.label = view("tessera");
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = this;
  descriptor.uncapturedErrorCallbackInfo.callback =
      [](WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* context, void*) {
        static_cast<Context*>(context)->record_error(kind_of(type), text(message));
      };
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = this;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason reason,
                                                  WGPUStringView message, void* context, void*) {
    if (reason == WGPUDeviceLostReason_FailedCreation) return;  // told by the request itself
    static_cast<Context*>(context)->record_error(ErrorKind::kDeviceLost, text(message));
  };
  struct Reply {
    WGPUDevice device = nullptr;
    std::string message;
  } reply;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = &reply;
  callback.callback = [](WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                         void* user, void*) {
    auto& to = *static_cast<Reply*>(user);
    if (status == WGPURequestDeviceStatus_Success) to.device = device;
    to.message = text(message);
  };
  wgpuAdapterRequestDevice(adapter, &descriptor, callback);  // replies before it returns
  if (reply.device == nullptr) {
    fail(ErrorKind::kUnsupported, "webgpu", "'{}' gives no device: {}", name_, reply.message);
  }
  device_.reset(reply.device);
  queue_.reset(wgpuDeviceGetQueue(device_.get()));
}

void Context::record_error(ErrorKind kind, std::string message) {
  const std::lock_guard lock(error_mutex_);
  if (closing_) return;
  // Whatever else went wrong, that the device is gone matters most.
  if (kind == ErrorKind::kDeviceLost) {
    if (!lost_) error_.emplace(kind, name_, "device lost: " + message);
    lost_ = true;
  } else if (!error_) {
    error_.emplace(kind, name_, message);
  }
}

Status Context::take_error() {
  const std::lock_guard lock(error_mutex_);
  if (!error_) return ok_status();
  const Error error = *error_;
  if (!lost_) error_.reset();
  return error;
}

void Context::wait() {
  poll(nullptr);
}

void Context::wait_for(uint64_t submission) {
  poll(&submission);
}

void Context::poll(const uint64_t* submission) {
  {
    const std::lock_guard lock(error_mutex_);
    if (lost_) return;  // nothing will come any more
  }
  native::wait(device_.get(), submission);
}

void Context::push_scopes() {
  for (const WGPUErrorFilter filter : kFilters) wgpuDevicePushErrorScope(device_.get(), filter);
}

void Context::pop_scopes(const std::string& label) {
  struct Caught {
    WGPUErrorType type = WGPUErrorType_NoError;
    std::string message;
  } caught;
  for (size_t i = 0; i < std::size(kFilters); ++i) {
    WGPUPopErrorScopeCallbackInfo callback = WGPU_POP_ERROR_SCOPE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.userdata1 = &caught;
    callback.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message,
                           void* user, void*) {
      auto& to = *static_cast<Caught*>(user);
      if (type == WGPUErrorType_NoError || to.type != WGPUErrorType_NoError) return;
      to.type = type;
      to.message = text(message);
    };
    wgpuDevicePopErrorScope(device_.get(), callback);  // replies before it returns
  }
  if (caught.type != WGPUErrorType_NoError) {
    fail(kind_of(caught.type), label, "{}", caught.message);
  }
  take_error().value();
}

BufferHandle Context::make_buffer(const std::string& label, int64_t size_bytes,
                                  WGPUBufferUsage usage) {
  if (size_bytes > capabilities_.max_buffer_bytes) {
    fail(ErrorKind::kOutOfMemory, name_,
         "a buffer of {} bytes ({}) is more than the device's limit of {}; use a smaller model or "
         "batch, or another device",
         size_bytes, label, capabilities_.max_buffer_bytes);
  }
  take_error().value();
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.label = view(label);
  descriptor.size = static_cast<uint64_t>(size_bytes);
  descriptor.usage = usage;
  try {
    return guarded(
        label, [&] { return BufferHandle(wgpuDeviceCreateBuffer(device_.get(), &descriptor)); });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    fail(ErrorKind::kOutOfMemory, name_, "no memory for a buffer of {} bytes ({}): {}", size_bytes,
         label, error.what());
  }
}

BindGroupLayout Context::make_layout(const std::string& label,
                                     const std::vector<BindingLayout>& bindings) {
  std::vector<WGPUBindGroupLayoutEntry> entries(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].visibility = WGPUShaderStage_Compute;
    WGPUBufferBindingLayout& buffer = entries[i].buffer;
    // A size that is too small for the shader must show here or at the pipeline: wgpu-native aborts
    // the process on errors of a submit.
    buffer.minBindingSize = static_cast<uint64_t>(bindings[i].min_bytes);
    switch (bindings[i].kind) {
      case BindingKind::kRead:
        buffer.type = WGPUBufferBindingType_ReadOnlyStorage;
        break;
      case BindingKind::kReadWrite:
        buffer.type = WGPUBufferBindingType_Storage;
        break;
      case BindingKind::kUniform:
        buffer.type = WGPUBufferBindingType_Uniform;
        buffer.hasDynamicOffset = true;
        break;
    }
  }
  WGPUBindGroupLayoutDescriptor descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  descriptor.label = view(label);
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  return BindGroupLayout(wgpuDeviceCreateBindGroupLayout(device_.get(), &descriptor));
}

ShaderModule Context::make_module(const std::string& label, const std::string& source) {
  WGPUShaderSourceWGSL wgsl = {};
  wgsl.chain.sType = WGPUSType_ShaderSourceWGSL;
  wgsl.code = view(source);
  WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &wgsl.chain;
  descriptor.label = view(label);
  // Without checks the kernels' own guards must hold: the conformance suite runs both ways.
  return ShaderModule(options_.runtime_checks
                          ? wgpuDeviceCreateShaderModule(device_.get(), &descriptor)
                          : native::make_unchecked_module(device_.get(), descriptor));
}

Pipeline Context::compile(const Kernel& kernel, const std::vector<BindingLayout>& bindings) {
  Pipeline pipeline;
  pipeline.label = kernel.label();
  const std::string source = native_wgsl(kernel);
  const ShaderModule module =
      guarded(pipeline.label, [&] { return make_module(pipeline.label, source); });
  pipeline.layout = guarded(pipeline.label, [&] { return make_layout(pipeline.label, bindings); });
  WGPUPipelineLayoutDescriptor layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  layout_descriptor.label = view(pipeline.label);
  const WGPUBindGroupLayout groups[] = {pipeline.layout.get()};
  layout_descriptor.bindGroupLayoutCount = 1;
  layout_descriptor.bindGroupLayouts = groups;
  const PipelineLayout layout = guarded(pipeline.label, [&] {
    return PipelineLayout(wgpuDeviceCreatePipelineLayout(device_.get(), &layout_descriptor));
  });
  WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  descriptor.label = view(pipeline.label);
  descriptor.layout = layout.get();
  descriptor.compute.module = module.get();
  descriptor.compute.entryPoint = view(kernel.entry);
  pipeline.handle = guarded(pipeline.label, [&] {
    return ComputePipeline(wgpuDeviceCreateComputePipeline(device_.get(), &descriptor));
  });
  return pipeline;
}

const Pipeline& Context::pipeline(const Kernel& kernel,
                                  const std::vector<BindingLayout>& bindings) {
  std::string key = kernel.label() + '\n' + kernel.source + '\n';
  for (const BindingLayout& binding : bindings) {
    key += fmt::format(" {}:{}", static_cast<int>(binding.kind), binding.min_bytes);
  }
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  return pipelines_.emplace(std::move(key), compile(kernel, bindings)).first->second;
}

}  // namespace tessera::webgpu
