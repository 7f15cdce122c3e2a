#ifndef GMB_DEVICE_DEVICES_H_
#define GMB_DEVICE_DEVICES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/allocator.h"
#include "device/mapper.h"
#include "device/stream_fences.h"

namespace gmb::device {

// Opens devices by name: the one door to the kinds. A kind that this machine
// lacks is FAILED_PRECONDITION with what to do about it.

struct HostOptions {
  uint64_t capacity_bytes;
  std::string uuid = "host-0";
};

[[nodiscard]] absl::StatusOr<std::unique_ptr<Allocator>> OpenHostAllocator(
    HostOptions options);

// `name` is "GPU-<uuid>" or "cuda:<ordinal>".
[[nodiscard]] absl::StatusOr<std::unique_ptr<Allocator>> OpenVmmAllocator(
    std::string_view name);
[[nodiscard]] absl::StatusOr<std::unique_ptr<Allocator>> OpenIpcAllocator(
    std::string_view name);

// The client's side, for a device that a broker named. `host` needs no
// device; the CUDA kinds use the GPU with this UUID, in its primary context
// (retained for the mapper's life).
[[nodiscard]] absl::StatusOr<std::unique_ptr<Mapper>> OpenMapper(
    const DeviceInfo& info);

// Fences in the streams of that device, in the same primary context.
[[nodiscard]] absl::StatusOr<std::unique_ptr<StreamFences>> OpenStreamFences(
    const DeviceInfo& info);

// The CUDA side of this machine, for `gmb doctor` and `gmbd --check`. Never
// fails: `problem` says what is missing.
struct CudaProbe {
  std::string driver_version;    // "580.159.04", empty without a driver
  std::string problem;           // empty when devices can be used
  bool machine_has_gpu = false;  // that the kernel shows, whether used or not
  std::vector<DeviceInfo> gpus;
};
[[nodiscard]] CudaProbe ProbeCuda();

// The processes that use a GPU, as NVML lists them.
[[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> DeviceProcesses(
    const std::string& uuid);
// The bytes that all of them use together, those that draw too. An error where
// that is not known of each.
[[nodiscard]] absl::StatusOr<uint64_t> DeviceListedBytes(
    const std::string& uuid);
// And how much of it is used, by whomever.
[[nodiscard]] absl::StatusOr<uint64_t> DeviceUsedBytes(const std::string& uuid);

}  // namespace gmb::device

#endif  // GMB_DEVICE_DEVICES_H_
