#ifndef GMB_BENCH_DEVICE_STEPS_H_
#define GMB_BENCH_DEVICE_STEPS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device/handle.h"

namespace gmb::bench {

// A named time of one step, over all slabs of a lease.
using Step = std::pair<std::string, absl::Duration>;

// The driver's own calls for one lease of a vmm device, in one process:
// create, export, import, map, access, unmap, release. Nothing of ours is in
// between, so this is the floor for what stands above it.
[[nodiscard]] absl::StatusOr<std::vector<Step>> RunDriverSteps(
    const device::DeviceInfo& info, const std::vector<uint64_t>& slab_bytes);

// The client's part of it, with slabs that another process made: reserve,
// import, map, access, close, unmap. Takes over `handles`, which are fds.
[[nodiscard]] absl::StatusOr<std::vector<Step>> RunClientSteps(
    const device::DeviceInfo& info,
    std::vector<device::ShareableHandle> handles,
    const std::vector<uint64_t>& slab_bytes);

}  // namespace gmb::bench

#endif  // GMB_BENCH_DEVICE_STEPS_H_
