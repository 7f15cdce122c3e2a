#ifndef GMB_CLIENT_DEVICE_PROBE_H_
#define GMB_CLIENT_DEVICE_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gmb/options.h"

namespace gmb::internal {

// The CUDA side of this machine, as this process sees it.
struct DeviceProbe {
  std::string driver_version;  // "580.159.04"; empty without a driver
  std::string problem;  // empty when GPUs can be used; otherwise what to do
  bool machine_has_gpu = false;  // that the kernel shows, whether used or not
  std::vector<Device> gpus;
};

// Loads the driver if there is one. Never fails.
[[nodiscard]] DeviceProbe ProbeDevices();

// How much of a GPU is used, as NVML tells.
struct GpuUse {
  std::string uuid;
  uint64_t used_bytes = 0;
  // By the processes that are listed; those of other PID namespaces are not.
  uint64_t listed_bytes = 0;
};
// Of the GPUs that NVML knows, and of whose processes it tells all bytes.
[[nodiscard]] std::vector<GpuUse> ProbeUses(const DeviceProbe& probe);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_DEVICE_PROBE_H_
