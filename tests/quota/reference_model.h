// The quota rules once more, the slow and plain way: every figure is recomputed
// from the lists of leases and waiting requests, nothing is kept beside them.
// Written from docs/quota.md, not from the engine; the property test compares
// the two event by event.
#ifndef GMB_TESTS_QUOTA_REFERENCE_MODEL_H_
#define GMB_TESTS_QUOTA_REFERENCE_MODEL_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/effect.h"
#include "quota/engine.h"
#include "quota/event.h"

namespace gmb::quota {

class ReferenceModel {
 public:
  explicit ReferenceModel(const EngineOptions& options) : options_(options) {}

  // Granted, Denied and Waiting in order; then the answers about quotas and
  // pools, sorted. No BudgetChanged.
  Effects Handle(const Event& event, Instant now);
  // The engine chooses what comes back in part, with the next event: the model
  // judges that choice, and follows it. Answers what is wrong with it.
  void FollowInPart(const Restored& chosen) { chosen_ = chosen; }
  const std::string& WrongInPart() const { return wrong_; }
  // When the next wait ends, or a claim begins or ceases to hold.
  std::optional<Instant> NextDeadline() const;

 private:
  struct Share {  // of one tenant in one pool
    TenantQuota quota;
    uint64_t effective = 0;
    uint64_t unreturned = 0;
    bool pending = false;
  };
  struct ModelPool {
    uint64_t target = 0;
    uint64_t capacity = 0;
    uint64_t granularity = 1;
    uint64_t missing = 0;
    uint64_t returning = 0;  // of these
    bool draining = false;
    bool pending = false;
    std::map<TenantId, Share> shares;
    std::vector<TenantId> pending_order;
  };
  struct ModelLease {
    SessionId session;
    TenantId tenant;
    PoolId pool;
    uint64_t bytes = 0;
    uint32_t handles = 0;
    bool hard = true;
    bool evicted = false;
  };
  // An Acquire of one pool, or a Restore of one or more.
  struct Wanted {
    RequestId request;
    SessionId session;
    TenantId tenant;
    std::map<PoolId, uint64_t> bytes;
    uint32_t handles = 0;
    Instant deadline;
    Nanoseconds linger{0};  // put off by this, once
    Instant since{};        // it waits
    bool hard = true;
    std::vector<LeaseId> leases;  // of a Restore
    std::set<LeaseId> back = {};  // came back in part
    bool comes_whole = false;
    bool IsRestore() const { return !leases.empty(); }
  };
  struct ModelWaiter {
    Wanted wanted;
    std::optional<Instant> head_since;  // first the head of a queue
    Nanoseconds first_hold{0};          // 0: not known yet
  };
  // Of a tenant in a queue: those with less are served first.
  using TurnRank = std::pair<double, size_t>;

  void On(const PoolSet& event);
  void On(const PoolDrain& event);
  void On(const MissingChanged& event);
  void On(const UnreturnedChanged& event);
  void On(const TenantSet& event);
  void On(const TenantRemove& event);
  void On(const QuotaSet& event);
  void On(const SessionClosed& event);
  void On(const Acquire& event);
  void On(const Cancel& event);
  void On(const Softened& event);
  void On(const Released& event);
  void On(const GrantFailed& event);
  void On(const Tick& event);

  void On(const HardChanged& event);
  void On(const Evicted& event);
  void On(const Restore& event);
  void On(const SessionPausing& event);
  void On(const Shared& event);
  void On(const BytesLeaving& event);

  // Leased and unreturned; of these what is on the device; of these what is
  // hard.
  uint64_t Charged(PoolId pool, TenantId tenant) const;
  uint64_t Resident(PoolId pool, TenantId tenant) const;
  uint64_t Hard(PoolId pool, TenantId tenant) const;
  uint64_t Unreturned(PoolId pool, TenantId tenant) const;
  uint64_t OverLimit(PoolId pool, TenantId tenant) const;
  int64_t ResidentOfAll(PoolId pool) const;
  uint64_t Guarantee(PoolId pool, TenantId tenant) const;
  uint64_t Limit(PoolId pool, TenantId tenant) const;
  int64_t Committed(PoolId pool, TenantId extra_tenant = {},
                    uint64_t extra = 0) const;
  int64_t Usable(PoolId pool) const;  // capacity - missing
  bool WithinGuarantee(const Wanted& request, PoolId pool) const;
  bool WithinGuarantee(const Wanted& request) const;  // in all its pools
  // The bytes that it asks for above its limit.
  uint64_t HeldBack(const Wanted& request, PoolId pool) const;
  int64_t Free(PoolId pool) const;
  int64_t Lacking(const Wanted& request, PoolId pool) const;
  // Whether it may be served because it is its turn in this pool.
  bool Fits(const Wanted& request, PoolId turn) const;

  // Claims (reference_claims.cc).
  void LearnFirstHolds();
  bool IsCovered(const Wanted& request, PoolId pool) const;
  bool HoldsNow(const ModelWaiter& waiter) const;
  Instant NextTurn(const ModelWaiter& waiter) const;
  // Of those that wait for the pool, the oldest of each tenant first.
  TurnRank RankOf(PoolId pool, TenantId tenant) const;
  // The first in order that lacks bytes in the pool, and before it the first
  // that lacks but the sum; `unpassable`: of those whose second is over.
  std::vector<const ModelWaiter*> Heads(PoolId pool, bool unpassable) const;
  std::vector<const ModelWaiter*> Claiming(PoolId pool) const;
  // For waiting requests within guarantees, as far as they find it.
  uint64_t KeptWithin(PoolId pool) const;
  // The bytes it lacks because others are served first. `older_only`: than
  // itself.
  int64_t LackingBeside(const Wanted& request, PoolId pool,
                        bool older_only) const;
  size_t ArrivalOf(const Wanted& request) const;
  double Priority(PoolId pool, TenantId tenant) const;
  uint64_t HandlesOf(std::optional<TenantId> tenant) const;

  std::optional<Refusal> Impossible(const Wanted& request, PoolId pool) const;
  void DenyImpossible(PoolId pool);
  // In the order in which they are to be served.
  std::vector<Wanted> Order(PoolId pool) const;
  std::optional<Wanted> Next(PoolId pool);
  ModelWaiter& WaiterOf(RequestId request);
  bool IsWaiting(RequestId request) const;
  bool IsFrontOfItsTenant(const Wanted& request, PoolId pool) const;
  void Arrive(const Wanted& request);
  void End(LeaseId lease);

  void Settle(PoolId pool);
  bool Serve(PoolId pool);
  void ServeAll();
  void Expire();
  void Announce();
  void Deny(const Wanted& request, const Refusal& refusal,
            bool pausing = false);
  // Says what keeps a request back at this moment.
  Refusal WhyNotNow(const Wanted& request) const;
  // Takes the waiting requests that the predicate names out of the list.
  template <typename Predicate>
  std::vector<Wanted> Take(const Predicate& predicate);

  const EngineOptions options_;
  Instant now_;
  uint64_t last_lease_ = 0;
  std::map<PoolId, ModelPool> pools_;
  std::map<TenantId, uint32_t> max_handles_;
  std::map<LeaseId, ModelLease> leases_;
  std::set<SessionId> pausing_;
  std::vector<ModelWaiter> waiters_;  // in the order of arrival
  Effects requests_;                  // what the event brought about
  Effects answers_;
  std::optional<Restored> chosen_;
  std::string wrong_;
};

template <typename Predicate>
std::vector<ReferenceModel::Wanted> ReferenceModel::Take(
    const Predicate& predicate) {
  std::vector<Wanted> taken;
  for (const ModelWaiter& waiter : waiters_) {
    if (predicate(waiter.wanted)) taken.push_back(waiter.wanted);
  }
  std::erase_if(waiters_, [&](const ModelWaiter& waiter) {
    return predicate(waiter.wanted);
  });
  return taken;
}

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_REFERENCE_MODEL_H_
