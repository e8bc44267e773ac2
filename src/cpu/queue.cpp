#include "cpu/queue.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "cpu/device.hpp"

namespace tessera::cpu {

CpuQueue::CpuQueue(Device& device, const KernelTable& table, Arena& arena, ThreadTeam& team)
    : Queue(device, table, arena), team_(team) {}

void CpuQueue::begin() {
  step_ = std::make_unique<CpuStep>();
}

std::unique_ptr<Step> CpuQueue::end() {
  return std::move(step_);
}

size_t CpuQueue::reserve(size_t size_bytes) {
  TESSERA_DCHECK(step_ != nullptr);
  const size_t offset = round_up<size_t>(step_->arguments.size(), 64);
  step_->arguments.resize(offset + size_bytes);
  return offset;
}

void CpuQueue::write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) {
  device().write(buffer, offset_bytes, bytes);
}

void CpuQueue::copy(const Tensor& to, const Tensor& from) {
  const auto n_bytes = static_cast<size_t>(from.span_bytes());
  TESSERA_DCHECK(from.span_bytes() == to.span_bytes());
  const MemoryAccess access(static_cast<CpuDevice&>(device()));
  std::memmove(host_data<std::byte>(to), host_data<std::byte>(from), n_bytes);
}

void CpuQueue::request(const Tensor& tensor) {
  if (free_replies_.empty()) free_replies_.emplace_back();
  free_replies_.front().tensor = tensor;
  requested_.splice(requested_.end(), free_replies_, free_replies_.begin());
}

Status CpuQueue::receive(std::span<std::byte> bytes) {
  TESSERA_DCHECK(!received_.empty() && bytes.size() == received_.front().bytes.size());
  std::copy(received_.front().bytes.begin(), received_.front().bytes.end(), bytes.begin());
  free_replies_.splice(free_replies_.begin(), received_, received_.begin());
  return ok_status();
}

void CpuQueue::submit(const Step& step) {
  const auto& recorded = static_cast<const CpuStep&>(step);
  const MemoryAccess access(static_cast<CpuDevice&>(device()));
  team_.run(
      [](void* context, int64_t i_launch, Team& team) noexcept {
        const auto& run = *static_cast<const CpuStep*>(context);
        const CpuStep::Launch& launch = run.launches[static_cast<size_t>(i_launch)];
        launch.call(run, launch.argument_offset, team);
      },
      const_cast<CpuStep*>(&recorded), static_cast<int64_t>(recorded.launches.size()));
  for (Reply& reply : requested_) {
    const Tensor& tensor = reply.tensor;
    reply.bytes.resize(static_cast<size_t>(tensor.span_bytes()));
    device().read(*tensor.buffer, tensor.offset_bytes, reply.bytes);
  }
  received_.splice(received_.end(), requested_);
}

}  // namespace tessera::cpu
