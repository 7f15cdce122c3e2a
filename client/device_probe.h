#ifndef GMB_CLIENT_DEVICE_PROBE_H_
#define GMB_CLIENT_DEVICE_PROBE_H_

#include <string>
#include <vector>

#include "gmb/options.h"

namespace gmb::internal {

// The CUDA side of this machine, as this process sees it.
struct DeviceProbe {
  bool built_in = false;       // this build has the CUDA devices
  std::string driver_version;  // "580.159.04"; empty without a driver
  std::string problem;  // empty when GPUs can be used; otherwise what to do
  std::vector<Device> gpus;
};

// Loads the driver if there is one. Never fails.
[[nodiscard]] DeviceProbe ProbeDevices();

}  // namespace gmb::internal

#endif  // GMB_CLIENT_DEVICE_PROBE_H_
