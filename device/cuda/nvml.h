#ifndef GMB_DEVICE_CUDA_NVML_H_
#define GMB_DEVICE_CUDA_NVML_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/devices.h"

// NVML, loaded at run time (libnvidia-ml.so.1). It tells about GPUs without a
// CUDA context, which would cost half a GiB of device memory. Functions are
// thread-safe. All are FAILED_PRECONDITION where NVML is missing, and
// NOT_FOUND for a GPU that NVML does not know (a MIG slice, say).

namespace gmb::device::nvml {

// "580.159.04"
[[nodiscard]] absl::StatusOr<std::string> DriverVersion();

// Free memory of the whole device, as everybody sees it.
[[nodiscard]] absl::StatusOr<uint64_t> FreeBytes(const std::string& uuid);

// And what of it is used, by whomever, without what the driver has for itself
// (where NVML tells them apart: from driver 510 on).
[[nodiscard]] absl::StatusOr<uint64_t> UsedBytes(const std::string& uuid);

// Processes with a context on the device. Empty in a PID namespace that the
// others are not part of.
[[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> Processes(
    const std::string& uuid);

// The bytes that all of them use, those that draw too. FAILED_PRECONDITION
// where NVML does not tell that of each.
[[nodiscard]] absl::StatusOr<uint64_t> ListedBytes(const std::string& uuid);

}  // namespace gmb::device::nvml

#endif  // GMB_DEVICE_CUDA_NVML_H_
