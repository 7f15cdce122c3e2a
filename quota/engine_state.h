// The engine behind its interface: tables of tenants, pools, leases and waiting
// requests, and one reaction for each event.
#ifndef GMB_QUOTA_ENGINE_STATE_H_
#define GMB_QUOTA_ENGINE_STATE_H_

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "quota/admission.h"
#include "quota/engine.h"
#include "quota/handle_budget.h"

namespace gmb::quota {

struct Engine::State {
  // A pool stays where it is while its table moves; it is copied with it.
  struct PlacedPool : std::unique_ptr<PoolState> {
    PlacedPool() = default;
    PlacedPool(const PlacedPool& other)
        : unique_ptr(other == nullptr ? nullptr
                                      : std::make_unique<PoolState>(*other)) {}
    PlacedPool(PlacedPool&&) noexcept = default;
    PlacedPool& operator=(const PlacedPool&) = delete;
    PlacedPool& operator=(PlacedPool&&) noexcept = default;
    using unique_ptr::operator=;
  };
  struct TenantRecord {
    HandleBudget::Share handles;
    uint64_t waiting = 0;
  };
  // The part of a request that concerns one pool, rounded up.
  struct Part {
    PoolId pool;
    Ask ask;
  };
  // An Acquire or a Restore that is being decided.
  struct Request {
    RequestId request;
    SessionId session;
    TenantId tenant;
    Instant deadline;
    uint32_t handles = 0;  // of an Acquire
    absl::InlinedVector<Part, 1> parts;
    std::vector<LeaseId> leases;      // of a Restore
    std::vector<SessionId> sessions;  // of these leases
    bool IsRestore() const { return !leases.empty(); }
    // Null: it asks for nothing there.
    const Part* PartIn(PoolId pool) const;
  };
  struct WaiterRecord {
    Request asked;
    uint64_t place = 0;  // in the order of arrival, over all pools
    Instant since;
    // Of one that was the head of a queue: when it holds, and when that
    // changes.
    std::optional<ClaimWindow> window = {};
    Instant turns_at = Instant::Max();
  };
  // Requests in the order of their deadlines, or of their claims' turns.
  struct Expiry {
    Instant deadline;
    uint64_t place = 0;
    RequestId request;

    friend bool operator<(const Expiry& a, const Expiry& b) {
      return std::tie(a.deadline, a.place) < std::tie(b.deadline, b.place);
    }
  };
  // A session's waiting requests in the order of arrival.
  struct Arrival {
    uint64_t place = 0;
    RequestId request;

    friend bool operator<(const Arrival& a, const Arrival& b) {
      return a.place < b.place;
    }
  };

  explicit State(const EngineOptions& engine_options)
      : options(engine_options), handles(engine_options.max_handles) {}

  // Time (engine_state.cc). The pools are to be settled in any case.
  void Expire(std::vector<PoolId> touched, Effects& effects);

  // Claims of the heads of queues (engine_claims.cc).
  // `kept_bytes`: for requests within guarantees.
  void BeginClaims(PoolId id, const PoolState& pool, uint64_t kept_bytes);
  void BeginClaim(RequestId request);
  // The first request in order that lacks bytes in the pool, and before it the
  // first that lacks but the sum: of those that may be passed until then at
  // most.
  absl::InlinedVector<RequestId, 2> HeadsOf(PoolId id, const PoolState& pool,
                                            uint64_t kept_bytes,
                                            Instant passable_until) const;
  // Brings claims up to date with the time. Answers the pools in which others
  // may be served now.
  std::vector<PoolId> TurnClaims();
  void ScheduleTurn(WaiterRecord& record);
  void UnscheduleTurn(WaiterRecord& record);
  // The bytes that requests that borrow have to leave in the pool at this
  // moment.
  Claims ClaimsIn(PoolId id, const PoolState& pool) const;
  void AddClaim(PoolId id, const PoolState& pool, RequestId request,
                Claims& claims) const;
  bool IsCoveredEverywhere(const Request& request) const;
  // See Engine::NextShortage; of those that borrow.
  std::optional<Shortage> BorrowersShortage(PoolId id, const PoolState& pool,
                                            uint64_t incoming_bytes) const;
  Instant CollectsFrom(const WaiterRecord& record, const Claims& claims) const;

  // Requests and leases (engine_state.cc).
  void On(const Acquire& event, Effects& effects);
  void On(const Cancel& event, Effects& effects);
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

  PoolState* FindPool(PoolId id);
  const PoolState* FindPool(PoolId id) const;
  std::optional<Ledger::TargetRefusal> CheckPool(const PoolSet& change) const;
  std::optional<Refusal> CheckQuota(const QuotaSet& change) const;
  std::optional<Refusal> CheckRemove(const TenantRemove& change) const;

  // After every change of a pool's books: settles them, tells the caller what
  // came into force and serves whoever can be served.
  void Settle(PoolId id, PoolState& pool, Effects& effects);
  void SettleAll(std::vector<PoolId> ids, Effects& effects);
  // Serves these pools, and those that requests of several pools tie to them,
  // in the order of their ids, until nobody can be served.
  void ServeAll(std::vector<PoolId> ids, Effects& effects);
  void AddLinked(std::vector<PoolId>& ids) const;
  // Brings the queue up to date with accounts that changed, and tells the
  // caller of quotas that came into force or became pending.
  void Publish(PoolId id, PoolState& pool, Effects& effects);
  // Whether anybody was served.
  bool Serve(PoolId id, PoolState& pool, Effects& effects);
  // Tells the queue which requests of several pools lack bytes in another one.
  void MarkLackingElsewhere(PoolId id, PoolState& pool);
  // The next that may borrow.
  std::optional<RequestId> NextToBorrow(PoolId id, PoolState& pool);
  using ClaimsByPool = absl::flat_hash_map<PoolId, Claims>;
  bool FitsElsewhere(const WaiterRecord& record, PoolId except,
                     ClaimsByPool& known) const;

  // Says what keeps a request that is not in a queue from being served now.
  std::optional<Refusal> Blocked(const Request& request) const;
  // The same of one that has waited and is to be denied.
  Refusal WhyWaited(const Request& request) const;
  bool IsWithinGuarantee(const Request& request) const;
  // Serves the request, lets it wait, or denies it.
  void Decide(Request request, Effects& effects);
  // Charges it to the books, which were checked, and answers it.
  void Carry(const Request& request, Effects& effects);
  void Grant(const Request& request, Effects& effects);
  void BringBack(const Request& request, Effects& effects);
  // The evicted ones of these leases as parts by pool, in the order of pools.
  void CollectParts(Request& request) const;
  static Ledger::Place PlaceOf(const LeaseView& lease);
  void Move(LeaseView& lease, bool hard, bool evicted);
  void EndLease(LeaseId id, Effects& effects);
  // A lease that a waiting Restore asks for is no more.
  void LeaveOut(LeaseId lease, RequestId request, Effects& effects);
  // A lease joins the Restore that its session waits for: a session that waits
  // for some of its leases and kept others would hold those up who need them.
  void JoinRestore(LeaseId lease, Effects& effects);
  void Enqueue(WaiterRecord record);
  // Forgets a waiting request and answers what it was. Its pools are to be
  // settled.
  WaiterRecord Dequeue(RequestId request);
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
  uint64_t last_place = 0;
  uint64_t last_lease = 0;
  uint64_t denial_looks = 0;  // at waiting requests, by DenyWhere
  absl::flat_hash_map<PoolId, PlacedPool> pools;
  absl::flat_hash_map<TenantId, TenantRecord> tenants;
  // All that tenants make many of is in trees: a table that grows, or sweeps
  // what was erased, moves all of them in the one event that it happens in.
  absl::btree_map<LeaseId, LeaseView> leases;
  std::map<RequestId, WaiterRecord> waiters;      // each stays where it is
  absl::btree_map<LeaseId, RequestId> restoring;  // waits for a Restore
  // Waiting Restores of a session's leases, by place.
  absl::btree_map<SessionId, absl::btree_set<Arrival>> restores;
  absl::btree_set<SessionId> pausing;
  absl::btree_map<SessionId, absl::btree_set<Arrival>> sessions;  // that wait
  absl::btree_set<Expiry> expiries;
  absl::btree_set<Expiry> turns;  // of claims
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_ENGINE_STATE_H_
