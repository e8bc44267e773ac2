#pragma once

#include <cstring>
#include <list>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/team.hpp"
#include "base/thread_team.hpp"
#include "cpu/memory.hpp"
#include "device/queue.hpp"

namespace tessera::cpu {

/// A recorded step: kernels with their arguments, in order.
class CpuStep final : public Step {
 public:
  struct Launch {
    void (*call)(const CpuStep& step, size_t argument_offset, Team& team) noexcept;
    size_t argument_offset;
    std::string_view label;
  };
  std::vector<Launch> launches;
  std::vector<unsigned char> arguments;  // each at a multiple of 64
};

/// Runs a step on one team of threads, kernel after kernel.
class CpuQueue final : public Queue {
 public:
  CpuQueue(Device& device, const KernelTable& table, Arena& arena, ThreadTeam& team);

  void begin() override;
  std::unique_ptr<Step> end() override;
  void write(Buffer& buffer, int64_t offset_bytes, std::span<const std::byte> bytes) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void request(const Tensor& tensor) override;
  void submit(const Step& step) override;
  Status receive(std::span<std::byte> bytes) override;
  Status wait() override { return ok_status(); }  // submit() returns when the step is done

  /// Records `Kernel(args, team)`, to be run by the threads of the team. The arguments are
  /// copied; they must be plain data, since the kernel was compiled for another instruction set.
  template <typename Args>
  void record(std::string_view label, void (*kernel)(const Args&, Team&) noexcept,
              const Args& args) {
    static_assert(std::is_trivially_copyable_v<Args>);
    struct Packed {
      void (*kernel)(const Args&, Team&) noexcept;
      Args args;
    };
    const Packed packed = {kernel, args};
    const size_t offset = reserve(sizeof packed);
    std::memcpy(step_->arguments.data() + offset, &packed, sizeof packed);
    step_->launches.push_back({[](const CpuStep& step, size_t at, Team& team) noexcept {
                                 Packed copy;
                                 std::memcpy(&copy, step.arguments.data() + at, sizeof copy);
                                 copy.kernel(copy.args, team);
                               },
                               offset, label});
  }

 private:
  /// A request(), from asking to receiving. They move between lists, so that decoding does not
  /// allocate.
  struct Reply {
    Tensor tensor;
    std::vector<std::byte> bytes;
  };

  size_t reserve(size_t size_bytes);

  ThreadTeam& team_;
  std::list<Reply> free_replies_, requested_, received_;
  std::unique_ptr<CpuStep> step_;
};

/// The queue that a CPU row is given: rows are only registered for devices that make one.
inline CpuQueue& cpu_queue(Queue& queue) {
  return static_cast<CpuQueue&>(queue);
}

}  // namespace tessera::cpu
