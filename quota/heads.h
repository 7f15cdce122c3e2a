// The heads of the pools' queues at one moment: what they claim, and which of
// them reclaim is for.
#ifndef GMB_QUOTA_HEADS_H_
#define GMB_QUOTA_HEADS_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "quota/claim.h"
#include "quota/pools.h"
#include "quota/view.h"
#include "quota/waiters.h"

namespace gmb::quota {

// Valid until the pools or those who wait change. `pool` is the one of that id.
class Heads {
 public:
  Heads(const Pools& pools, const Waiters& waiters, Instant now)
      : pools_(pools), waiters_(waiters), now_(now) {}

  // The first request in order that lacks bytes in the pool, and before it the
  // first that lacks but the sum: of those that may be passed until then at
  // most. `kept_bytes`: for requests within guarantees.
  [[nodiscard]] absl::InlinedVector<RequestId, 2> In(
      PoolId id, const PoolState& pool, uint64_t kept_bytes,
      Instant passable_until) const;
  // The bytes that requests that borrow have to leave in the pool at this
  // moment.
  [[nodiscard]] Claims ClaimsIn(PoolId id, const PoolState& pool) const;
  // See Engine::NextShortage.
  [[nodiscard]] std::optional<Shortage> NextShortage(
      PoolId id, const PoolState& pool, uint64_t incoming_bytes) const;

 private:
  void AddClaim(PoolId id, const PoolState& pool, RequestId request,
                Claims& claims) const;
  [[nodiscard]] std::optional<Shortage> ShortageWithin(
      PoolId id, const PoolState& pool, uint64_t incoming_bytes) const;
  [[nodiscard]] std::optional<Shortage> BorrowersShortage(
      PoolId id, const PoolState& pool, uint64_t incoming_bytes) const;
  [[nodiscard]] Instant CollectsFrom(const Waiter& waiter,
                                     const Claims& claims) const;

  const Pools& pools_;
  const Waiters& waiters_;
  const Instant now_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_HEADS_H_
