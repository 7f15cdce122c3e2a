#ifndef GMB_BENCH_DEVICE_BENCH_DEVICE_H_
#define GMB_BENCH_DEVICE_BENCH_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/allocator.h"

namespace gmb::bench {

// The device that a broker would own: "host:SIZE", "cuda:0" or a GPU's UUID
// (with "ipc:" in front too), as gmbd's --device.
[[nodiscard]] absl::StatusOr<std::unique_ptr<device::Allocator>> OpenAllocator(
    const std::string& name);

// So that one repetition does not pay for the clearing of the one before:
// waits until all but a little of `bytes` is free.
[[nodiscard]] absl::Status WaitForFree(device::Allocator* allocator,
                                       uint64_t bytes);

}  // namespace gmb::bench

#endif  // GMB_BENCH_DEVICE_BENCH_DEVICE_H_
