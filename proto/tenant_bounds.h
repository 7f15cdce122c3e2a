#ifndef GMB_PROTO_TENANT_BOUNDS_H_
#define GMB_PROTO_TENANT_BOUNDS_H_

#include <cstdint>

namespace gmb::proto {

// Of a tenant, and of a broker: the most slabs in leases and the most sessions
// that can be allowed, whoever sets them (the file, flags, an operator).
inline constexpr uint32_t kMostHandles = 1'000'000;
inline constexpr uint32_t kMostSessions = 100'000;

}  // namespace gmb::proto

#endif  // GMB_PROTO_TENANT_BOUNDS_H_
