// The engine's answers: to be carried out by the caller, in order.
#ifndef GMB_QUOTA_EFFECT_H_
#define GMB_QUOTA_EFFECT_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

struct Granted {
  RequestId request{};
  LeaseId lease{};
  SessionId session{};
  TenantId tenant{};
  PoolId pool{};
  // A multiple of the granularity, at least what was asked for.
  uint64_t bytes = 0;
  uint32_t handles = 0;
};

struct Denied {
  RequestId request{};
  SessionId session{};
  Reason reason = Reason::kBadRequest;
  // How many bytes were too many, where bytes are the reason.
  uint64_t deficit_bytes = 0;
  // With kPoolExhausted: the bytes are there, and are kept for requests that
  // are served first. The deficit is what would have to come free beside those.
  bool claimed = false;
  // When trying again may help; 0 where waiting alone will not help.
  Nanoseconds retry_after{0};
  // With kPoolExhausted and kTenantLimit: denied before its deadline, because
  // its session is being paused.
  bool pausing = false;
};

// The leases of a Restore are charged to the device again: all that it still
// asked for, or, in part, some of them.
struct Restored {
  RequestId request{};
  SessionId session{};
  TenantId tenant{};
  uint64_t bytes = 0;  // over all pools; 0: there was nothing to restore
  std::vector<LeaseId> leases = {};  // by their ids
  // The request waits for the rest; Restored or Denied follows.
  bool in_part = false;
};

// The request is in the queue; Granted, Restored or Denied follows.
struct Waiting {
  RequestId request{};
  // Requests that waited before it, in the pool where they are the most.
  uint64_t ahead = 0;
};

// All of a quota is in force. Answers a QuotaSet, or ends a QuotaPending.
struct QuotaApplied {
  TenantId tenant{};
  PoolId pool{};
};
// A quota is stored and takes full effect as memory is released.
struct QuotaPending {
  TenantId tenant{};
  PoolId pool{};
  // Bytes of the guarantee not yet in force, or bytes leased above the limit.
  uint64_t remaining_bytes = 0;
};
// The quota stays as it was.
struct QuotaRefused {
  TenantId tenant{};
  PoolId pool{};
  Refusal refusal{};
};

// The pool has its target size. Answers a PoolSet, or ends a PoolPending.
struct PoolApplied {
  PoolId pool{};
};
// The pool shrinks as memory is released.
struct PoolPending {
  PoolId pool{};
  uint64_t remaining_bytes = 0;  // capacity above the target
};
// The pool stays as it was. With kBadRequest, `tenant` is one whose guarantee
// would be above its limit in a pool of that size, unless the event itself is
// malformed.
struct PoolRefused {
  PoolId pool{};
  TenantId tenant{};
  Refusal refusal{};
};

struct TenantRemoved {
  TenantId tenant{};
};
struct TenantRefused {
  TenantId tenant{};
  Refusal refusal{};  // deficit_bytes: bytes it still holds
};

// This tenant's budget on this pool has changed: tell its sessions. Several in
// the effects of one event are as good as the last.
struct BudgetChanged {
  TenantId tenant{};
  PoolId pool{};
};

using Effect =
    std::variant<Granted, Denied, Waiting, QuotaApplied, QuotaPending,
                 QuotaRefused, PoolApplied, PoolPending, PoolRefused,
                 TenantRemoved, TenantRefused, BudgetChanged, Restored>;
using Effects = absl::InlinedVector<Effect, 2>;

}  // namespace gmb::quota

#endif  // GMB_QUOTA_EFFECT_H_
