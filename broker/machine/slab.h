#ifndef GMB_BROKER_MACHINE_SLAB_H_
#define GMB_BROKER_MACHINE_SLAB_H_

#include <cstdint>

#include "device/allocator.h"

namespace gmb::broker {

// Names a slab in the whole broker, for ever; the keeper's and the journal's
// key.
using SlabId = uint64_t;

// One physical allocation with one shareable handle. A value: the handle
// itself is with the keeper, the memory with the allocator.
struct Slab {
  SlabId id = 0;
  device::SlabKey key = 0;
  uint64_t bytes = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SLAB_H_
