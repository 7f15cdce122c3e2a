// Strong types for ids, byte bounds and time in the quota engine.
#ifndef GMB_QUOTA_UNITS_H_
#define GMB_QUOTA_UNITS_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <utility>

namespace gmb::quota {

// An id that cannot be mistaken for another kind of id. Equality, order, hash.
template <typename Tag>
struct Id {
  uint64_t value = 0;

  friend constexpr auto operator<=>(Id a, Id b) = default;
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value);
  }
};

// Tenants and pools have small ids chosen by the caller; their names live with
// the caller.
using TenantId = Id<struct TenantTag>;
using PoolId = Id<struct PoolTag>;
using SessionId = Id<struct SessionTag>;
// Of one Acquire, chosen by the caller; unique among the requests that wait.
using RequestId = Id<struct RequestTag>;
// Of one grant, chosen by the engine; never used twice.
using LeaseId = Id<struct LeaseTag>;

using Nanoseconds = std::chrono::nanoseconds;

// A point in time: nanoseconds since a start that the caller chose. Additions
// saturate, so that "for ever" plus a second is still for ever.
struct Instant {
  int64_t ns = 0;

  static constexpr Instant Max() {
    return {std::numeric_limits<int64_t>::max()};
  }

  friend constexpr auto operator<=>(Instant a, Instant b) = default;
  friend constexpr Instant operator+(Instant at, Nanoseconds d) {
    int64_t sum = 0;
    if (__builtin_add_overflow(at.ns, static_cast<int64_t>(d.count()), &sum)) {
      return d.count() > 0 ? Max()
                           : Instant{std::numeric_limits<int64_t>::min()};
    }
    return {sum};
  }
  friend constexpr Nanoseconds operator-(Instant a, Instant b) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.ns, b.ns, &difference)) {
      return a > b ? Nanoseconds::max() : Nanoseconds::min();
    }
    return Nanoseconds(difference);
  }
};

// No pool is larger (64 TiB). It keeps every sum over a pool inside 63 bits.
inline constexpr uint64_t kMaxPoolBytes = uint64_t{1} << 46;

}  // namespace gmb::quota

#endif  // GMB_QUOTA_UNITS_H_
