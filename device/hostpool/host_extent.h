#ifndef GMB_DEVICE_HOSTPOOL_HOST_EXTENT_H_
#define GMB_DEVICE_HOSTPOOL_HOST_EXTENT_H_

#include <cstdint>

namespace gmb::device {

// The host pool is shared out in granules of this size, that of every device.
inline constexpr uint64_t kHostPoolGranularityBytes = uint64_t{2} << 20;

// A piece of the host pool; both in bytes and multiples of the granularity.
struct HostExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  friend bool operator==(const HostExtent&, const HostExtent&) = default;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_HOST_EXTENT_H_
