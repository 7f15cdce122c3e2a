// Whether a request can be served now, later, or never. Pure functions of the
// books and the queue.
#ifndef GMB_QUOTA_ADMISSION_H_
#define GMB_QUOTA_ADMISSION_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/btree_map.h"
#include "quota/claim.h"
#include "quota/ledger.h"
#include "quota/tenant_quota.h"
#include "quota/wait_queue.h"

namespace gmb::quota {

// The books of a pool and those who wait for it.
struct PoolState {
  explicit PoolState(uint64_t granularity_bytes) : ledger(granularity_bytes) {}

  Ledger ledger;
  WaitQueue queue;
  // Waiting requests that ask for bytes of other pools as well, by place.
  absl::btree_map<uint64_t, RequestId> linked;
  bool draining = false;
  // The caller was told PENDING and not yet APPLIED.
  bool shrink_pending = false;
};

Standing StandingOf(const Account& account);

// Why waiting cannot help: the request is above the tenant's limit, or above
// what would be left if all others fell to their guarantees (for soft bytes: if
// all others were evicted). None: it can be served, now or later.
std::optional<Refusal> CheckEver(const Ledger& ledger, const Account& account,
                                 const Ask& ask);

// How many bytes would have to come free, or cease to be hard, for this request
// to fit its pool; 0 or less when it fits. Turns and limits apart.
int64_t LackingBytes(const PoolState& pool, const Account& account,
                     const Ask& ask);

// Says what a request that borrows lacks in a pool, apart from what is claimed.
enum class Lack {
  kNothing,
  kBytes,  // free ones
  kSum,    // they are free, and what others are guaranteed rests on them
};
Lack LackOf(const PoolState& pool, const Account& account, const Ask& ask,
            uint64_t kept_for_guarantees_bytes);

// The free bytes that waiting requests within guarantees are to have.
uint64_t KeptForGuarantees(const PoolState& pool);

// How many bytes would have to come free for a request that borrows to fit
// beside what is kept for guarantees and claimed before it; 0 or less when it
// does.
int64_t LackingBesideClaims(const PoolState& pool, const Account& account,
                            const Ask& ask, const Claims& claims,
                            uint64_t place);

// Whether soft bytes that may be taken, and bytes that come back by themselves,
// could serve the request together with what is free.
bool IsCovered(const PoolState& pool, const Account& account, const Ask& ask);

// A request that has just arrived is younger than all that wait.
inline constexpr uint64_t kNewPlace = std::numeric_limits<uint64_t>::max();

// Says what keeps a request from being served now: its tenant's limit, the
// pool, or others that are served first (Refusal::claimed). None: serve it.
std::optional<Refusal> CheckNow(const PoolState& pool, const Account& account,
                                const Ask& ask, const Claims& claims,
                                uint64_t place = kNewPlace);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_ADMISSION_H_
