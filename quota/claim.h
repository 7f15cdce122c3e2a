// The claim of a queue's head: when it holds back who comes after it, and what
// leaves it whole. Pure functions; docs/quota.md, "The queue", has the rules.
#ifndef GMB_QUOTA_CLAIM_H_
#define GMB_QUOTA_CLAIM_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "quota/units.h"

namespace gmb::quota {

// When a request that was once the head of a queue holds, and when it lets
// others pass.
struct ClaimWindow {
  Instant from{};  // until then it may be passed
  // How long it holds at first; 0: not known yet, and it does not hold.
  Nanoseconds first{0};
};

// A window's answer for one moment.
struct ClaimPhase {
  bool holds = false;
  Instant since{};
  Instant until = Instant::Max();
};

// A hold, and then as long a time in which others pass. The first hold lasts
// for `first`, each later one for as long as the claim has existed by then: so
// that whoever is served by a hold of T is served within 4T of the claim's
// beginning, and the claim costs others no more time than it leaves them.
ClaimPhase PhaseAt(const ClaimWindow& window, Instant now);

// The bytes that one waiting request claims of one pool while it holds: its
// own.
struct Claim {
  RequestId request{};
  TenantId tenant{};
  uint64_t place = 0;  // in the order of arrival
  uint64_t bytes = 0;  // of those that are free
  // Of what hard leases can borrow; 0: nothing.
  uint64_t slack_bytes = 0;
};

// The bytes that a request that borrows has to leave in a pool.
struct Claims {
  // For waiting requests within guarantees. Where these lack bytes it is more
  // than is free, and counts no further.
  uint64_t guaranteed_bytes = 0;
  absl::InlinedVector<Claim, 1> held;  // of claims that hold now
};

// How many bytes would have to come free so that a request of `bytes`, of which
// `beyond_bytes` are hard ones that its tenant's hard room does not cover,
// leaves the claim whole; 0 or less when it does.
int64_t LackingBeside(const Claim& claim, int64_t bytes, int64_t beyond_bytes,
                      int64_t free_bytes, int64_t slack_bytes);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_CLAIM_H_
