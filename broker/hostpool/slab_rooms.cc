// Eviction and restore: which part of the host pool is which slab's.
#include "broker/hostpool/slab_rooms.h"

#include <algorithm>

namespace gmb::broker {

std::vector<std::vector<device::HostExtent>> SlabRooms(
    const std::vector<device::HostExtent>& place,
    const std::vector<uint64_t>& slab_bytes) {
  std::vector<std::vector<device::HostExtent>> rooms;
  auto extent = place.begin();
  uint64_t used = 0;  // of *extent
  for (uint64_t left : slab_bytes) {
    rooms.emplace_back();
    while (left > 0) {
      if (extent == place.end()) return {};
      const uint64_t bytes = std::min(left, extent->bytes - used);
      rooms.back().push_back({extent->offset + used, bytes});
      left -= bytes;
      used += bytes;
      if (used == extent->bytes) {
        ++extent;
        used = 0;
      }
    }
  }
  if (extent != place.end()) return {};
  return rooms;
}

}  // namespace gmb::broker
