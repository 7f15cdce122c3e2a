// Memory ahead of need: who gives, and who comes back.
#include "tests/quota/ahead.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "quota/candidate.h"

namespace gmb::quota {
namespace {

constexpr Nanoseconds kLongest = std::chrono::hours(24);

AheadSession SessionOf(absl::Span<const AheadSession> sessions, SessionId id) {
  const auto it = std::lower_bound(
      sessions.begin(), sessions.end(), id,
      [](const AheadSession& one, SessionId key) { return one.session < key; });
  const bool found = it != sessions.end() && it->session == id;
  return found ? *it : AheadSession{.session = id};
}

const TenantRow* FindTenant(const Snapshot& snapshot, TenantId tenant,
                            PoolId pool) {
  for (const TenantRow& row : snapshot.tenants) {
    if (row.tenant == tenant && row.pool == pool) return &row;
  }
  return nullptr;
}

uint64_t ShareOf(uint64_t bytes, double share) {
  return static_cast<uint64_t>(static_cast<double>(bytes) *
                               std::clamp(share, 0.0, 1.0));
}

// Out and back, of all that moves with the lease.
Nanoseconds RoundTrip(const LeaseRow& lease, const PlannerOptions& planner) {
  const uint64_t bytes = std::max(lease.bytes, lease.session_bytes);
  const Nanoseconds out = std::min(CopyTime(bytes, planner), kLongest);
  return out + std::clamp(lease.restore_time, out, kLongest);
}

bool IsTakable(const LeaseRow& lease) {
  return lease.gate == Gate::kParked && !lease.evicted && !lease.busy &&
         lease.evictable && lease.contents != Contents::kResident &&
         !lease.no_room && lease.users.empty() && lease.group == GroupId{} &&
         lease.owed_by_process == 0;
}

bool IsIdleForLong(const LeaseRow& lease, Instant now,
                   const AheadOptions& options, const PlannerOptions& planner) {
  const int64_t trips = std::clamp<int64_t>(options.round_trips, 0, 64);
  const Nanoseconds idle =
      std::max({options.idle_for, trips * RoundTrip(lease, planner),
                std::clamp(lease.usual_gap, Nanoseconds(0), 2 * kLongest) / 2});
  return lease.idle_since + idle <= now;
}

bool IsLeftAlone(const AheadSession& session, Instant now,
                 const AheadOptions& options) {
  return session.taken && !(session.brought_back.has_value() &&
                            *session.brought_back + options.keep_for <= now);
}

// Memory on its way counts as gone.
uint64_t StayingBytes(const Snapshot& snapshot, const TenantRow& tenant) {
  uint64_t leaving = 0;
  for (const LeaseRow& lease : snapshot.leases) {
    const bool its = lease.tenant == tenant.tenant && lease.pool == tenant.pool;
    if (its && lease.busy && !lease.evicted) leaving += lease.bytes;
  }
  return tenant.resident_bytes - std::min(tenant.resident_bytes, leaving);
}

bool MayTake(const Snapshot& snapshot, const LeaseRow& lease,
             const AheadSession& session, Instant now,
             const AheadOptions& options, const PlannerOptions& planner) {
  const TenantRow* tenant = FindTenant(snapshot, lease.tenant, lease.pool);
  return IsTakable(lease) && tenant != nullptr && tenant->owed_answers == 0 &&
         now >= lease.back_off_until &&
         now >= ResidentUntil(lease, *tenant, planner) &&
         IsIdleForLong(lease, now, options, planner) &&
         !IsLeftAlone(session, now, options) &&
         StayingBytes(snapshot, *tenant) >=
             tenant->guarantee_bytes + lease.bytes;
}

}  // namespace

std::vector<LeaseId> TakeAhead(const Snapshot& snapshot, const AheadPool& pool,
                               absl::Span<const AheadSession> sessions,
                               Instant now, const AheadOptions& options,
                               const PlannerOptions& planner) {
  const uint64_t low = ShareOf(pool.capacity_bytes, options.low);
  const uint64_t high =
      std::max(low, ShareOf(pool.capacity_bytes, options.high));
  uint64_t free = pool.free_bytes + pool.incoming_bytes;
  const bool waited = pool.waited_at.has_value() &&
                      *pool.waited_at + options.waited_within >= now;
  if (low == 0 || free >= low || pool.anybody_waits || !waited) return {};
  std::vector<const LeaseRow*> takable;
  for (const LeaseRow& lease : snapshot.leases) {
    if (lease.pool == pool.pool &&
        MayTake(snapshot, lease, SessionOf(sessions, lease.session), now,
                options, planner))
      takable.push_back(&lease);
  }
  if (takable.empty()) return {};
  // The longest idle session; of it the largest leases, the fewest.
  std::sort(
      takable.begin(), takable.end(), [](const LeaseRow* a, const LeaseRow* b) {
        return std::make_tuple(a->idle_since, a->session, ~a->bytes, a->lease) <
               std::make_tuple(b->idle_since, b->session, ~b->bytes, b->lease);
      });
  const SessionId session = takable.front()->session;
  const TenantRow& tenant =
      *FindTenant(snapshot, takable.front()->tenant, pool.pool);
  uint64_t resident = StayingBytes(snapshot, tenant);
  std::vector<LeaseId> taken;
  for (const LeaseRow* lease : takable) {
    if (lease->session != session || free >= high) break;
    if (resident < tenant.guarantee_bytes + lease->bytes) continue;
    resident -= lease->bytes;
    free += lease->bytes;
    taken.push_back(lease->lease);
  }
  return taken;
}

std::optional<SessionId> BringBackAhead(const Snapshot& snapshot,
                                        const AheadPool& pool,
                                        absl::Span<const AheadSession> sessions,
                                        Instant now,
                                        const AheadOptions& options,
                                        const PlannerOptions& planner) {
  if (!options.bring_back || pool.anybody_waits) return std::nullopt;
  struct Away {
    uint64_t bytes = 0;
    bool may_come = true;
    Nanoseconds back{0};
  };
  std::map<SessionId, Away> away;
  for (const LeaseRow& lease : snapshot.leases) {
    Away& one = away[lease.session];
    one.may_come = one.may_come && lease.pool == pool.pool && !lease.busy &&
                   lease.gate == Gate::kClosed && lease.users.empty() &&
                   lease.group == GroupId{};
    if (!lease.evicted) continue;
    one.bytes += lease.bytes;
    one.back = std::max(one.back, RoundTrip(lease, planner) / 2);
  }
  const uint64_t high = ShareOf(pool.capacity_bytes, options.high);
  std::optional<std::pair<Instant, SessionId>> first;
  for (const auto& [id, one] : away) {
    const AheadSession session = SessionOf(sessions, id);
    if (!one.may_come || one.bytes == 0 ||
        session.usual_gap <= Nanoseconds(0) || !session.used_at.has_value() ||
        session.brought_back.has_value() ||
        pool.free_bytes < high + one.bytes) {
      continue;
    }
    const Nanoseconds gap = std::min(session.usual_gap, kLongest);
    const Instant expected = *session.used_at + gap;
    const Nanoseconds lead =
        std::max<Nanoseconds>(2 * one.back, std::chrono::seconds(1));
    // One that is long overdue does not come as it used to.
    if (now < expected + -lead || now > expected + gap / 2) continue;
    const auto candidate = std::make_pair(expected, id);
    if (!first.has_value() || candidate < *first) first = candidate;
  }
  if (!first.has_value()) return std::nullopt;
  return first->second;
}

}  // namespace gmb::quota
