#include "cpu/queue.hpp"

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

void CpuQueue::submit(const Step& step) {
  const auto& recorded = static_cast<const CpuStep&>(step);
  const MemoryAccess access(static_cast<CpuDevice&>(device()));
  team_.run(
      [](void* context, Team& team) noexcept {
        const auto& run = *static_cast<const CpuStep*>(context);
        for (const CpuStep::Launch& launch : run.launches) {
          launch.call(run, launch.argument_offset, team);
          team.barrier();
        }
      },
      const_cast<CpuStep*>(&recorded));
}

}  // namespace tessera::cpu
