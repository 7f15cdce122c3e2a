// The engine's face: an event with its time goes to one reaction, and questions
// are answered from its tables.
#include "quota/engine.h"

#include <algorithm>

#include "quota/engine_state.h"
#include "quota/explain.h"

namespace gmb::quota {

Engine::Engine(const EngineOptions& options)
    : state_(std::make_unique<State>(options)) {}
Engine::~Engine() = default;
Engine::Engine(const Engine& other)
    : state_(std::make_unique<State>(*other.state_)) {}
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;

Effects Engine::Handle(const Event& event, Instant now) {
  Effects effects;
  state_->now = std::max(state_->now, now);
  state_->Expire(state_->TurnClaims(), effects);
  std::visit([&](const auto& e) { state_->On(e, effects); }, event);
  return effects;
}

Effects Engine::Adopt(const std::vector<AdoptedLease>& leases,
                      uint64_t last_lease, Instant now) {
  Effects effects;
  state_->now = std::max(state_->now, now);
  state_->Adopt(leases, last_lease, effects);
  return effects;
}

std::optional<Instant> Engine::NextDeadline() const {
  return state_->waiters.NextDeadline();
}

std::optional<Refusal> Engine::Check(const QuotaSet& change) const {
  return state_->pools.CheckQuota(change);
}

std::optional<Refusal> Engine::Check(const PoolSet& change) const {
  const auto refused = state_->pools.CheckTarget(change);
  if (!refused) return std::nullopt;
  return refused->refusal;
}

std::optional<Refusal> Engine::Check(const TenantRemove& change) const {
  return state_->CheckRemove(change);
}

std::optional<Refusal> Engine::Check(const HardChanged& change) const {
  const LeaseView* lease = state_->leases.Find(change.lease);
  if (lease == nullptr || lease->evicted) return std::nullopt;
  if (lease->hard || !change.hard) return std::nullopt;
  const Ledger& ledger = state_->pools.Find(lease->pool)->ledger;
  const Account& account = *ledger.Find(lease->tenant);
  const uint64_t beyond_bytes =
      lease->bytes - std::min(lease->bytes, account.HardRoomBytes());
  const int64_t over_bytes =
      static_cast<int64_t>(beyond_bytes) - ledger.SlackBytes();
  if (beyond_bytes == 0 || over_bytes <= 0) return std::nullopt;
  return Refusal{.reason = Reason::kOvercommitted,
                 .deficit_bytes = static_cast<uint64_t>(over_bytes)};
}

std::vector<PoolId> Engine::Pools() const { return state_->pools.Ids(); }

std::vector<TenantId> Engine::Tenants() const {
  std::vector<TenantId> ids;
  for (const auto& [id, tenant] : state_->tenants) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<PoolView> Engine::Pool(PoolId id) const {
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr) return std::nullopt;
  const Ledger& ledger = pool->ledger;
  const int64_t slack_bytes = ledger.SlackBytes();
  return PoolView{
      .target_bytes = ledger.target_bytes(),
      .capacity_bytes = ledger.capacity_bytes(),
      .granularity_bytes = ledger.granularity_bytes(),
      .missing_bytes = ledger.missing().bytes,
      .leased_bytes = ledger.totals().leased_bytes,
      .unreturned_bytes = ledger.totals().unreturned_bytes,
      .evicted_bytes = ledger.totals().evicted_bytes,
      .charged_bytes = ledger.totals().ResidentBytes(),
      .hard_bytes =
          ledger.totals().ResidentBytes() - ledger.totals().soft_bytes,
      .guaranteed_bytes = ledger.totals().requested_bytes,
      .committed_bytes = ledger.totals().committed_bytes,
      .free_to_borrow_bytes =
          static_cast<uint64_t>(std::max<int64_t>(slack_bytes, 0)),
      .broken_bytes = static_cast<uint64_t>(std::max<int64_t>(-slack_bytes, 0)),
      .waiting = pool->queue.waiting().requests,
      .waiting_bytes = pool->queue.waiting().bytes,
      .leases = ledger.totals().leases,
      .handles = ledger.totals().handles,
      .draining = pool->draining,
  };
}

std::optional<TenantView> Engine::Tenant(TenantId id) const {
  const auto it = state_->tenants.find(id);
  if (it == state_->tenants.end()) return std::nullopt;
  return TenantView{.max_handles = it->second.handles.most,
                    .handles = it->second.handles.used,
                    .waiting = it->second.waiting};
}

std::optional<TenantPoolView> Engine::TenantPool(TenantId tenant,
                                                 PoolId id) const {
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr || !state_->tenants.contains(tenant)) return std::nullopt;
  const Account* account = pool->ledger.Find(tenant);
  if (account == nullptr) return TenantPoolView{};
  const Claims claims = state_->heads().ClaimsIn(id, *pool);
  const WaitQueue::Sum waiting = pool->queue.WaitingOf(tenant);
  return TenantPoolView{
      .quota = account->quota,
      .requested_guarantee_bytes = account->requested.guarantee_bytes,
      .effective_guarantee_bytes = account->effective_bytes,
      .limit_bytes = account->requested.limit_bytes,
      .leased_bytes = account->leased_bytes,
      .evicted_bytes = account->evicted_bytes,
      .resident_bytes = account->ResidentBytes(),
      .hard_bytes = account->HardBytes(),
      .unreturned_bytes = account->unreturned_bytes,
      .borrowed_bytes = account->BorrowedBytes(),
      .over_limit_bytes = account->OverLimitBytes(),
      .obtainable_bytes = ObtainableBytes(*pool, *account, claims),
      .obtainable_soft_bytes = ObtainableSoftBytes(*pool, *account, claims),
      .leases = account->leases,
      .handles = account->handles,
      .waiting = waiting.requests,
      .waiting_bytes = waiting.bytes,
  };
}

std::optional<Holding> Engine::HoldingOf(TenantId tenant, PoolId id) const {
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr || !state_->tenants.contains(tenant)) return std::nullopt;
  const Account* account = pool->ledger.Find(tenant);
  if (account == nullptr) return Holding{};
  return Holding{.guarantee_bytes = account->effective_bytes,
                 .resident_bytes = account->ResidentBytes(),
                 .over_limit_bytes = account->OverLimitBytes(),
                 .weight = account->quota.weight};
}

std::optional<LeaseView> Engine::Lease(LeaseId id) const {
  const LeaseView* lease = state_->leases.Find(id);
  if (lease == nullptr) return std::nullopt;
  return *lease;
}

bool Engine::IsWaiting(RequestId request) const {
  return state_->waiters.Contains(request);
}

Engine::Denial Engine::DenialOf(RequestId request) const {
  const Waiter& waiter = state_->waiters.Of(request);
  Denial denial{.denied = state_->DenialOf(waiter.asked, waiter.place)};
  for (const Request::Part& part : waiter.asked.parts)
    denial.bytes += part.ask.bytes;
  return denial;
}

std::optional<RequestId> Engine::RestoreOf(LeaseId id) const {
  return state_->waiters.RestoreOf(id);
}

std::optional<Shortage> Engine::NextShortage(PoolId id,
                                             uint64_t incoming_bytes) const {
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr) return std::nullopt;
  return state_->heads().NextShortage(id, *pool, incoming_bytes);
}

std::optional<Explanation> Engine::Explain(TenantId tenant, PoolId id,
                                           const WaitingPage& page) const {
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr || !state_->tenants.contains(tenant)) return std::nullopt;
  const Claims claims = state_->heads().ClaimsIn(id, *pool);
  Explanation explanation = ExplainPool(*pool, tenant, claims);
  for (ClaimView& claim : explanation.claims) {
    if (claim.within_guarantee) continue;
    claim.until =
        PhaseAt(*state_->waiters.Of(claim.request).window, state_->now).until;
  }
  explanation.waiting = WaitingOf(tenant, id, page);
  explanation.all_waiting = pool->queue.WaitingOf(tenant).requests;
  return explanation;
}

std::vector<WaitingView> Engine::WaitingOf(TenantId tenant, PoolId id,
                                           const WaitingPage& page) const {
  std::vector<WaitingView> views;
  const PoolState* pool = state_->pools.Find(id);
  if (pool == nullptr || page.most == 0) return views;
  const Claims claims = state_->heads().ClaimsIn(id, *pool);
  const Account* account = pool->ledger.Find(tenant);
  const auto view = [&](RequestId request) {
    const Waiter& waiter = state_->waiters.Of(request);
    const Request& asked = waiter.asked;
    const Ask& ask = asked.PartIn(id)->ask;
    // It waits, so that something blocks it: its limit, the bytes, or a turn
    // that is not its.
    const Refusal blocked =
        CheckNow(*pool, *account, ask, claims, waiter.place)
            .value_or(Refusal{.reason = Reason::kPoolExhausted});
    views.push_back({.place = waiter.place,
                     .request = request,
                     .session = asked.session,
                     .bytes = ask.bytes,
                     .since = waiter.since,
                     .deadline = asked.deadline,
                     .blocked_by = blocked.reason,
                     .deficit_bytes = blocked.deficit_bytes,
                     .claimed = blocked.claimed});
    return views.size() < page.most;
  };
  pool->queue.ForEachOf(tenant, page.after_place, view);
  return views;
}

uint64_t Engine::handles() const { return state_->handles.used(); }
uint64_t Engine::leases() const { return state_->leases.size(); }
uint64_t Engine::last_lease() const { return state_->leases.last(); }
uint64_t Engine::denial_looks() const { return state_->denial_looks; }
uint64_t Engine::waiting() const { return state_->waiters.size(); }

}  // namespace gmb::quota
