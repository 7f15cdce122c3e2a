// The engine behind its interface: tenants, pools, leases and waiting requests,
// each a class that changes its own, and one reaction for each event.
#ifndef GMB_QUOTA_ENGINE_STATE_H_
#define GMB_QUOTA_ENGINE_STATE_H_

#include <optional>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "quota/admission.h"
#include "quota/engine.h"
#include "quota/handle_budget.h"
#include "quota/heads.h"
#include "quota/leases.h"
#include "quota/pools.h"
#include "quota/waiters.h"

namespace gmb::quota {

struct Engine::State {
  struct TenantRecord {
    HandleBudget::Share handles;
    uint64_t waiting = 0;
  };

  explicit State(const EngineOptions& engine_options)
      : options(engine_options), handles(engine_options.max_handles) {}

  // Time (engine_state.cc). The pools are to be settled in any case.
  void Expire(std::vector<PoolId> touched, Effects& effects);

  // Requests and leases (engine_state.cc).
  void On(const Acquire& event, Effects& effects);
  void On(const Cancel& event, Effects& effects);
  void On(const Softened& event, Effects& effects);
  void On(const Released& event, Effects& effects);
  void On(const GrantFailed& event, Effects& effects);
  void On(const SessionClosed& event, Effects& effects);
  void On(const Tick& event, Effects& effects);

  // Changes by reclaim (engine_reclaim.cc).
  void On(const HardChanged& event, Effects& effects);
  void On(const Evicted& event, Effects& effects);
  void On(const Restore& event, Effects& effects);
  void On(const SessionPausing& event, Effects& effects);
  void On(const Shared& event, Effects& effects);
  void On(const BytesLeaving& event, Effects& effects);

  // Changes by operators and the device (engine_changes.cc).
  void On(const PoolSet& event, Effects& effects);
  void On(const PoolDrain& event, Effects& effects);
  void On(const MissingChanged& event, Effects& effects);
  void On(const UnreturnedChanged& event, Effects& effects);
  void On(const TenantSet& event, Effects& effects);
  void On(const TenantRemove& event, Effects& effects);
  void On(const QuotaSet& event, Effects& effects);

  // engine_adopt.cc.
  void Adopt(const std::vector<AdoptedLease>& adopted, uint64_t last_id,
             Effects& effects);
  bool AdoptOne(const AdoptedLease& adopted);

  std::optional<Refusal> CheckRemove(const TenantRemove& change) const;

  // After every change of a pool's books: settles them, tells the caller what
  // came into force and serves whoever can be served.
  void Settle(PoolId id, PoolState& pool, Effects& effects);
  void SettleAll(std::vector<PoolId> ids, Effects& effects);
  // Serves these pools, and those that requests of several pools tie to them,
  // in the order of their ids, until nobody can be served.
  void ServeAll(std::vector<PoolId> ids, Effects& effects);
  // Brings the queue up to date with accounts that changed, and tells the
  // caller of quotas that came into force or became pending.
  void Publish(PoolId id, PoolState& pool, Effects& effects);
  Heads heads() const { return {pools, waiters, now}; }
  // The first requests that lack bytes hold for themselves what comes free.
  // `kept_bytes`: for requests within guarantees.
  void BeginClaims(PoolId id, const PoolState& pool, uint64_t kept_bytes);
  // Brings claims up to date with the time. Answers the pools in which others
  // may be served now.
  std::vector<PoolId> TurnClaims();
  // Whether anybody was served.
  bool Serve(PoolId id, PoolState& pool, Effects& effects);
  // The next that may borrow.
  std::optional<RequestId> NextToBorrow(PoolId id, PoolState& pool);

  // Says what keeps a request from being served now; `place`: of one in a queue.
  std::optional<Refusal> Blocked(const Request& request,
                                 uint64_t place = kNewPlace) const;
  // The same of one that has waited and is to be denied.
  Denied DenialOf(const Request& request, uint64_t place = kNewPlace) const;
  // Serves the request, lets it wait, or denies it.
  void Decide(Request request, Effects& effects);
  // Charges it to the books, which were checked, and answers it.
  void Carry(const Request& request, Effects& effects);
  void Grant(const Request& request, Effects& effects);
  void BringBack(const Request& request, Effects& effects);
  void EndLease(LeaseId id, Effects& effects);
  // A lease that a waiting Restore asks for is no more.
  void LeaveOut(LeaseId lease, RequestId request, Effects& effects);
  // A lease joins the Restore that its session waits for: a session that waits
  // for some of its leases and kept others would hold those up who need them.
  void JoinRestore(LeaseId lease, Effects& effects);
  void Enqueue(Waiter&& waiter);
  // Forgets a waiting request and answers what it was. Its pools are to be
  // settled.
  Waiter Dequeue(RequestId request);
  void DenyWaiting(RequestId request, const Refusal& refusal, Effects& effects);
  // Denies the waiting requests of a pool that `refuse` gives a reason for,
  // oldest first: of tenants that `suspect(tenant, most, most_hard)` takes, by
  // their largest requests. Answers the pools to be settled, this one among
  // them.
  template <typename Suspect, typename Refuse>
  std::vector<PoolId> DenyWhere(PoolId id, const Suspect& suspect,
                                const Refuse& refuse, Effects& effects);
  // Denies requests that a change of the pool or a quota has made impossible.
  std::vector<PoolId> DenyImpossible(PoolId id, const PoolState& pool,
                                     Effects& effects);

  const EngineOptions options;
  Instant now;  // of the event being handled; never runs backwards
  HandleBudget handles;
  uint64_t denial_looks = 0;  // at waiting requests, by DenyWhere
  quota::Pools pools;
  absl::flat_hash_map<TenantId, TenantRecord> tenants;
  Leases leases;
  Waiters waiters;
  absl::btree_set<SessionId> pausing;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_ENGINE_STATE_H_
