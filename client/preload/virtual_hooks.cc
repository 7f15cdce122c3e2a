// `gmb run`: how a lease finds the memory that it is.
#include "client/preload/virtual_hooks.h"

#include <cstddef>
#include <cstdint>

#include "client/preload/driver.h"
#include "client/preload/the_memory.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

internal::RangeHooks HooksOf(CUmemGenericAllocationHandle handle) {
  internal::RangeHooks hooks{};
  hooks.handle = handle;
  hooks.map = [](uint64_t name, const int* fds, const uint64_t* slab_bytes,
                 size_t count) {
    const Driver& driver = *Driver::Get();
    return static_cast<int>(
        TheVirtualMemory(driver).Arrive(name, fds, slab_bytes, count));
  };
  hooks.unmap = [](uint64_t name) {
    const Driver& driver = *Driver::Get();
    return static_cast<int>(TheVirtualMemory(driver).Leave(name));
  };
  return hooks;
}

}  // namespace gmb::preload
