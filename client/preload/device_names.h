#ifndef GMB_CLIENT_PRELOAD_DEVICE_NAMES_H_
#define GMB_CLIENT_PRELOAD_DEVICE_NAMES_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The devices' UUIDs as the broker writes them; the driver is asked for each
// until it has said it: it does not before cuInit. Thread-safe; no lock is held
// while it is asked.
class DeviceNames {
 public:
  // The driver outlives it.
  explicit DeviceNames(const Driver& driver) : driver_(driver) {}
  DeviceNames(const DeviceNames&) = delete;
  DeviceNames& operator=(const DeviceNames&) = delete;

  // Empty when the driver does not say. Stays where it is.
  [[nodiscard]] const std::string& UuidOf(CUdevice device);

 private:
  const Driver& driver_;
  base::Mutex mu_;
  std::map<CUdevice, std::string> uuids_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_DEVICE_NAMES_H_
