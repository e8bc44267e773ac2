#include "base/error.hpp"
#include "bench/tune.hpp"

namespace tessera::bench {

nlohmann::ordered_json run_tune(const DeviceRegistry::Choice& choice, const TuneOptions&,
                                const std::function<void(const TuneRow&)>&) {
  fail(ErrorKind::kUnsupported, "bench tune",
       "the kernels of '{}' have no configurations; expected --device webgpu in a build with it",
       choice.kind->name);
}

}  // namespace tessera::bench
