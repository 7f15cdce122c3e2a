// `gmb run`: which of the driver's memory pools are served.
#include "client/preload/pools.h"

namespace gmb::preload {

void Pools::Created(CUmemoryPool pool, const CUmemPoolProps& properties) {
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return;
  }
  const base::MutexLock lock(&mu_);
  served_[pool] = properties.location.id;
}

std::optional<CUdevice> Pools::Forget(CUmemoryPool pool) {
  const base::MutexLock lock(&mu_);
  const auto known = served_.find(pool);
  if (known == served_.end()) return std::nullopt;
  const CUdevice device = known->second;
  served_.erase(known);
  return device;
}

void Pools::NotDestroyed(CUmemoryPool pool, CUdevice device) {
  const base::MutexLock lock(&mu_);
  served_.try_emplace(pool, device);
}

std::optional<CUdevice> Pools::DeviceOf(const Driver& driver,
                                        CUmemoryPool pool) {
  {
    const base::MutexLock lock(&mu_);
    if (const auto found = served_.find(pool); found != served_.end()) {
      return found->second;
    }
  }
  CUdevice current = 0;
  CUmemoryPool its_default = nullptr;
  if (driver.cuCtxGetDevice(&current) == CUDA_SUCCESS &&
      GMB_REAL_CALL(driver, cuDeviceGetDefaultMemPool, &its_default, current) ==
          CUDA_SUCCESS &&
      its_default == pool) {
    return current;
  }
  return std::nullopt;
}

}  // namespace gmb::preload
