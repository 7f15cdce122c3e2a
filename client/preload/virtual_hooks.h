#ifndef GMB_CLIENT_PRELOAD_VIRTUAL_HOOKS_H_
#define GMB_CLIENT_PRELOAD_VIRTUAL_HOOKS_H_

#include "client/lease/range_hooks.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// By which a lease of that handle has VirtualMemory map and unmap it.
[[nodiscard]] internal::RangeHooks HooksOf(CUmemGenericAllocationHandle handle);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_VIRTUAL_HOOKS_H_
