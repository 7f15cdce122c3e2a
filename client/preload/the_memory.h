#ifndef GMB_CLIENT_PRELOAD_THE_MEMORY_H_
#define GMB_CLIENT_PRELOAD_THE_MEMORY_H_

#include "client/preload/driver.h"
#include "client/preload/memory.h"
#include "client/preload/pools.h"

namespace gmb::preload {

class IpcMemory;
class VirtualMemory;

// The program's memory; made when first asked for, never destroyed.
[[nodiscard]] Memory& TheMemory(const Driver& driver);
[[nodiscard]] VirtualMemory& TheVirtualMemory(const Driver& driver);
[[nodiscard]] IpcMemory& TheIpcMemory(const Driver& driver);
[[nodiscard]] Pools& ThePools();

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_THE_MEMORY_H_
