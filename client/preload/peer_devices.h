#ifndef GMB_CLIENT_PRELOAD_PEER_DEVICES_H_
#define GMB_CLIENT_PRELOAD_PEER_DEVICES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/device_names.h"
#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Which other GPUs of the process may use a GPU's memory, as cuDeviceCanAccessPeer
// tells programs. The driver is asked once for each GPU, after cuInit; that makes
// no context anywhere. Thread-safe; no lock is held while it is asked.
class PeerDevices {
 public:
  using Uuids = std::vector<std::string>;

  // Both outlive it.
  PeerDevices(const Driver& driver, DeviceNames* names)
      : driver_(driver), names_(*names) {}
  PeerDevices(const PeerDevices&) = delete;
  PeerDevices& operator=(const PeerDevices&) = delete;

  // None, where the process sees one GPU.
  [[nodiscard]] Uuids Of(CUdevice device);
  // From now on it has none.
  void Forsake(CUdevice device);

 private:
  const Driver& driver_;
  DeviceNames& names_;
  base::Mutex mu_;
  std::map<CUdevice, Uuids> peers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_PEER_DEVICES_H_
