#ifndef GMB_BROKER_HOSTPOOL_SLAB_ROOMS_H_
#define GMB_BROKER_HOSTPOOL_SLAB_ROOMS_H_

#include <cstdint>
#include <vector>

#include "device/hostpool/host_extent.h"

namespace gmb::broker {

// Cuts a lease's place in the host pool into the rooms of its slabs, in order
// of address; the slabs may differ from those that the place was filled from.
// Empty where the sizes do not add up to the place.
[[nodiscard]] std::vector<std::vector<device::HostExtent>> SlabRooms(
    const std::vector<device::HostExtent>& place,
    const std::vector<uint64_t>& slab_bytes);

}  // namespace gmb::broker

#endif  // GMB_BROKER_HOSTPOOL_SLAB_ROOMS_H_
