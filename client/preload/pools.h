#ifndef GMB_CLIENT_PRELOAD_POOLS_H_
#define GMB_CLIENT_PRELOAD_POOLS_H_

#include <optional>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Which of the driver's memory pools are served from leases: plain ones of a
// device. Pools that other processes may open, or of host memory, are the
// driver's. Thread-safe.
class Pools {
 public:
  void Created(CUmemoryPool pool, const CUmemPoolProps& properties);
  // Before the driver is to destroy it: the device, if it is served. After a
  // refusal, that again.
  [[nodiscard]] std::optional<CUdevice> Forget(CUmemoryPool pool);
  void NotDestroyed(CUmemoryPool pool, CUdevice device);
  // The device of a pool that is served.
  [[nodiscard]] std::optional<CUdevice> DeviceOf(const Driver& driver,
                                                 CUmemoryPool pool);

 private:
  base::Mutex mu_;
  std::unordered_map<CUmemoryPool, CUdevice> served_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_POOLS_H_
