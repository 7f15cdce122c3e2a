// The input and the answer of the reclaim planner: plain values.
//
// The caller keeps the snapshot's rows and changes them as it learns things;
// the planner reads them once a plan and remembers nothing. Bytes and times as
// everywhere in quota/. docs/reclaim.md has the rules.
#ifndef GMB_QUOTA_RECLAIM_H_
#define GMB_QUOTA_RECLAIM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quota/units.h"

namespace gmb::quota {

// Sessions that are parked, evicted and restored together.
using GroupId = Id<struct GroupTag>;

// The state of a session's gate word.
enum class Gate : uint8_t {
  kOff,     // the program does not use it
  kActive,  // a scope is open, or was too lately to be parked
  kParked,  // the GPU is quiet, and the gate can be closed
  kClosed,  // by the broker
};

enum class Contents : uint8_t { kPreserve, kDiscard, kResident };

// One lease and what matters of its session.
struct LeaseRow {
  LeaseId lease{};
  SessionId session{};
  GroupId group{};  // 0: none
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;
  // Of these, with a true copy in the host pool (sealed, or backed ahead).
  uint64_t backed_bytes = 0;
  Contents contents = Contents::kPreserve;
  // They never change again.
  bool sealed = false;
  // Of a group: of the session whose gate is the least parked.
  Gate gate = Gate::kOff;
  // Its device can evict it (not `ipc`).
  bool evictable = true;
  // Room for its contents is reserved in the host pool.
  bool host_room = false;
  // None is, and none could be now: the pool is full, or its tenant's part of
  // it. Only of contents that are to be kept.
  bool no_room = false;
  bool evicted = false;
  // Being made, evicted, restored, backed or released: left alone.
  bool busy = false;
  Instant idle_since{};         // last open with a scope
  Instant resident_since{};     // granted or restored
  Nanoseconds restore_time{0};  // measured; 0: never restored
  Instant coming_until{};       // as one of a session that is coming back
  Instant let_in_until{};       // its gate has just opened for a scope
  Instant back_off_until{};     // after a failed step
  // After a failed pause of its session. Of a shared one, of one of its users.
  Instant no_pause_until{};
  // Between two times that its session comes into use, as is usual; 0: not
  // known. Of a shared one, the least of its users'.
  Nanoseconds usual_gap{0};
  // That leave and come back when its session does so; 0: its own alone.
  uint64_t session_bytes = 0;
  // Of one that was asked to unmap or map it: when it should have answered. (A
  // shared one's gate need not be closed for that.)
  Instant unmap_deadline = Instant::Max();
  // Answers that its process owes, of whatever lease: they should have come by
  // now. Of a shared one, of the user that owes most.
  uint32_t owed_by_process = 0;
  // The bytes that the client could give back at once, as it last said, on this
  // lease's pool. Counted once a session: 0 on its other leases.
  uint64_t trimmable_bytes = 0;
  // The bytes that it was asked to give back there a moment ago and may still.
  // Likewise.
  uint64_t trimming_bytes = 0;
  // Of a shared lease, which has no session of its own: the sessions that use
  // it, and those that move together with them. `gate` is the least parked of
  // theirs.
  std::vector<SessionId> users = {};
};

// One tenant on one pool.
struct TenantRow {
  TenantId tenant{};
  PoolId pool{};
  uint64_t guarantee_bytes = 0;  // in force
  uint64_t resident_bytes = 0;   // unreturned ones included
  double weight = 1;
  bool may_terminate = false;
  // Answers that its processes owe, over all pools.
  uint32_t owed_answers = 0;
  Nanoseconds min_residency{0};
  Nanoseconds pause_grace = std::chrono::seconds(5);
};

struct Snapshot {
  // In any order: all of them, or those that come first (Shortlist).
  absl::Span<const LeaseRow> leases;
  // Sorted by (tenant, pool); a tenant that holds leases has a row.
  absl::Span<const TenantRow> tenants;
  uint64_t host_free_bytes = 0;  // of the host pool, not reserved
  // The bytes that leases that are not listed could give for a demand on one
  // pool, now and later.
  uint64_t beyond_bytes = 0;
  uint64_t later_bytes = 0;
};

// Bytes that are needed from a pool.
struct Need {
  PoolId pool{};
  uint64_t bytes = 0;
  // Where larger: so many would help if trims give them. They give what can not
  // be taken as well.
  uint64_t trim_bytes = 0;
};

enum class Cause : uint8_t {
  kWithinGuarantee,  // a request that its tenant's guarantee covers
  kBorrow,           // one above it
  kOperator,         // `reclaim TENANT`
  kOverLimit,        // a limit was lowered below what the tenant holds
  kPoolShrink,       // a pool is made smaller
  kPoolDrain,        // all of a pool
  kTenantDelete,     // all that a tenant holds
};

enum class Step : uint8_t { kTrim, kEvict, kPause, kTerminate };

struct Demand {
  Cause cause = Cause::kBorrow;
  // That asks; of kOperator, kOverLimit and kTenantDelete: the one that gives.
  TenantId tenant{};
  SessionId session{};  // that asks: its own leases stay
  GroupId group{};
  std::vector<Need> needs;
  // Of the request, or of the operator's demand.
  Instant deadline = Instant::Max();
  // With kBorrow: nobody may pass the request any more, so that it can collect
  // bytes piece by piece. Without, it takes all that it lacks or nothing.
  bool collects = false;
  // The last step that kOperator allows: kTrim or kEvict.
  Step last_step = Step::kEvict;
  // Plan::trim_by of the first plan for this demand that counted on trims: the
  // later ones wait no longer. Max: none has.
  Instant trim_by = Instant::Max();
};

// A session that is asked to give back what it caches.
struct TrimTarget {
  SessionId session{};
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;  // as it last said
};

// A lease that is taken.
struct Victim {
  LeaseId lease{};
  SessionId session{};
  GroupId group{};
  TenantId tenant{};
  PoolId pool{};
  uint64_t bytes = 0;
  uint64_t copy_bytes = 0;   // to the host pool, before it can go
  Step step = Step::kEvict;  // kEvict, kPause (then evict) or kTerminate
  // Not before this: it is resident for too short a time, or an earlier step
  // may suffice. The caller asks then whether the bytes are still lacking.
  Instant start{};
  // When the step has failed. A pause is then withdrawn.
  Instant deadline{};
  // After a failed eviction (closed, and not unmapped) the session may be
  // killed.
  bool may_terminate = false;
};

// One plan of one demand. Empty: nothing can be done now.
struct Plan {
  std::vector<TrimTarget> trims;
  Instant trim_deadline{};
  // Evictions that trimming may make needless start then. Max: it counts on no
  // trims.
  Instant trim_by = Instant::Max();
  std::vector<Victim> victims;  // in the order in which they are to be started
  uint64_t planned_bytes = 0;   // of the victims
  uint64_t copy_bytes = 0;
  // The bytes that the demand still lacks after all of this; more than 0 also
  // when more than kMaxVictims would be needed: plan again when this is done.
  uint64_t short_bytes = 0;
  // When a lease that was too young or left alone may be asked: plan again
  // then. Max: waiting alone will not help.
  Instant retry_at = Instant::Max();

  bool empty() const { return trims.empty() && victims.empty(); }
};

inline constexpr size_t kMaxVictims = 16;
// A request takes nothing from a process that owes so many answers, and from a
// tenant whose processes owe so many: each further try would cost it the time
// that a client has for its answer.
inline constexpr uint32_t kMostOwedByProcess = 1;
inline constexpr uint32_t kMostOwedByTenant = 3;

// Why a lease was or was not taken.
enum class Verdict : uint8_t {
  kTaken,
  kNotNeeded,        // others came first
  kOwn,              // it is the asking session's or group's
  kNotAsked,         // of a tenant that this demand is not for
  kEvicted,          // nothing of it is on the device
  kBusy,             // a step or a copy is under way
  kResident,         // RESIDENT, or its device cannot evict
  kGateOff,          // the program does not use the gate
  kActive,           // and this demand may not pause it
  kMayNotTerminate,  // it does not answer, and policy protects it
  kDistrusted,       // its process, or others of its tenant, do not answer
  kNoHostRoom,       // no room for its contents
  kYoung,            // resident for too short a time
  kBackOff,          // it failed lately
  kPauseFailed,      // active, and paused in vain lately
  kGuaranteed,       // within its tenant's guarantee
  kTooMany,          // more than kMaxVictims
  kInsufficient,     // all that could be taken would not have been enough
};
// "taken", "resident for too short a time" and so on.
absl::string_view VerdictText(Verdict verdict);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_RECLAIM_H_
