// `gmb run`: the GPUs that may use each other's memory.
#include "client/preload/peer_devices.h"

#include <utility>

namespace gmb::preload {

PeerDevices::Uuids PeerDevices::Of(CUdevice device) {
  {
    const base::MutexLock lock(&mu_);
    if (const auto known = peers_.find(device); known != peers_.end())
      return known->second;
  }
  int count = 0;
  if (driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return {};
  Uuids peers;
  for (int i = 0; i < count; ++i) {
    CUdevice other = 0;
    int can = 0;
    if (driver_.cuDeviceGet(&other, i) != CUDA_SUCCESS || other == device ||
        GMB_REAL_CALL(driver_, cuDeviceCanAccessPeer, &can, other, device) !=
            CUDA_SUCCESS ||
        can == 0) {
      continue;
    }
    if (const std::string& uuid = names_.UuidOf(other); !uuid.empty())
      peers.push_back(uuid);
  }
  const base::MutexLock lock(&mu_);
  return peers_.emplace(device, std::move(peers)).first->second;
}

void PeerDevices::Forsake(CUdevice device) {
  const base::MutexLock lock(&mu_);
  peers_[device].clear();
}

}  // namespace gmb::preload
