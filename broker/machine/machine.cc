// The machine's own turns: pools, the engine's answers, time, and draining.
#include "broker/machine/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/reclaim_rows.h"

namespace gmb::broker {
namespace {

bool IsTold(const quota::QuotaApplied& applied, const quota::Effects& effects) {
  return std::any_of(
      effects.begin(), effects.end(), [&](const quota::Effect& effect) {
        const auto* changed = std::get_if<quota::BudgetChanged>(&effect);
        return changed != nullptr && changed->tenant == applied.tenant &&
               changed->pool == applied.pool;
      });
}

}  // namespace

absl::StatusOr<quota::PoolId> Machine::AddPool(const NewPool& options,
                                               Turn& turn) {
  if (state_.FindPool(options.info.uuid) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("the device is given twice: name each device once: ",
                     options.info.uuid));
  }
  const quota::PoolSet set{quota::PoolId{state_.next_pool},
                           options.target_bytes,
                           options.info.granularity_bytes};
  if (options.target_bytes > options.baseline_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the pool is larger than the device's free memory: lower --pool, "
        "raise --headroom, or "
        "free the device: device=",
        options.info.uuid, " pool_bytes=", options.target_bytes,
        " free_bytes=", options.baseline_bytes));
  }
  if (state_.engine.Check(set).has_value() ||
      options.target_bytes < set.granularity_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pool is at least one granule and at most 64 TiB: pool_bytes=",
        options.target_bytes, " granularity_bytes=", set.granularity_bytes));
  }
  ++state_.next_pool;
  auto pool = std::make_unique<Pool>(set.pool, options.info, options.slabs);
  pool->baseline_bytes = options.baseline_bytes;
  pool->has_copier = options.has_copier;
  pool->share_of_bytes = options.share_of_bytes;
  pool->wanted = options.wanted;
  pool->reading.baseline_bytes = options.baseline_bytes;
  pool->reading.free_bytes = options.baseline_bytes;
  state_.pools.emplace(set.pool, std::move(pool));
  Tell(set, turn);
  for (const auto& [tenant_id, tenant] : state_.tenants) {
    Tell(quota::QuotaSet{set.pool, tenant_id,
                         tenant.policy.QuotaOn(options.info.uuid)},
         turn);
  }
  return set.pool;
}

// The engine decides at once. What follows for others is queued.
void Machine::Tell(const quota::Event& event, Turn& turn) {
  MarkChanged(event);
  const quota::Effects effects = state_.engine.Handle(event, turn.now());
  // What is granted now is planned with the capacity of now.
  SyncCapacities();
  for (const quota::Effect& effect : effects) {
    turn.Queue(effect);
    // A change that was pending has taken effect: the sessions are told, unless
    // they are told of this very change anyway.
    const auto* applied = std::get_if<quota::QuotaApplied>(&effect);
    if (applied != nullptr && !IsTold(*applied, effects))
      turn.Queue(quota::BudgetChanged{applied->tenant, applied->pool});
  }
}

// Nothing comes between the question and the change.
std::optional<quota::Refusal> Machine::TryToTell(
    const quota::HardChanged& event, Turn& turn) {
  if (auto refusal = state_.engine.Check(event)) return refusal;
  Tell(event, turn);
  return std::nullopt;
}

void Machine::Drain(Turn& turn) {
  while (const Work* work = turn.NextWork()) {
    std::visit([&](const auto& piece) { React(piece, turn); }, *work);
  }
}

void Machine::React(const quota::Effect& effect, Turn& turn) {
  if (const auto* granted = std::get_if<quota::Granted>(&effect)) {
    OnGranted(*granted, turn);
  } else if (const auto* denied = std::get_if<quota::Denied>(&effect)) {
    OnDenied(*denied, turn);
  } else if (const auto* waiting = std::get_if<quota::Waiting>(&effect)) {
    OnWaiting(*waiting, turn);
  } else if (const auto* restored = std::get_if<quota::Restored>(&effect)) {
    OnRestored(*restored, turn);
  } else if (const auto* changed = std::get_if<quota::BudgetChanged>(&effect)) {
    OnBudgetChanged(*changed, turn);
  } else if (const auto* applied = std::get_if<quota::QuotaApplied>(&effect)) {
    v1::Event event = NewEvent("quota_applied", applied->tenant);
    event.set_device(state_.PoolAt(applied->pool).uuid());
    turn.Publish(std::move(event));
  } else if (const auto* pending = std::get_if<quota::QuotaPending>(&effect)) {
    v1::Event event = NewEvent("quota_pending", pending->tenant);
    event.set_device(state_.PoolAt(pending->pool).uuid());
    event.set_bytes(pending->remaining_bytes);
    turn.Publish(std::move(event));
  }
}

void Machine::React(const Fact& fact, Turn& turn) {
  if (const auto* settled = std::get_if<LeaseSettled>(&fact)) {
    AdvanceUsersOf({&settled->lease, 1}, turn);
  } else if (const auto* failed = std::get_if<MoveFailed>(&fact)) {
    const auto lease = state_.leases.find(failed->lease);
    if (lease != state_.leases.end())
      AnswerUsers(lease->second.get(), failed->why, turn);
  } else if (const auto* left = std::get_if<LeaseLeft>(&fact)) {
    AdvanceUsersOf({&left->lease, 1}, turn);
    // It may have been the last one away.
    if (Session* session = state_.sessions.Find(left->session))
      AdvanceRestore(session, turn);
  } else if (const auto* ended = std::get_if<SessionEnded>(&fact)) {
    OnSessionEnded(*ended, turn);
  }
}

void Machine::OnSessionEnded(const SessionEnded& ended, Turn& turn) {
  if (ended.restoring.has_value())
    AdvanceOthers(*ended.restoring, nullptr, turn);
  std::vector<Session*> members;
  for (const uint64_t id : ended.members) {
    if (Session* member = state_.sessions.Find(id)) members.push_back(member);
  }
  ForgetPausesOf(members, turn);
  for (Session* member : members) AdvanceRestore(member, turn);
  AdvanceUsersOf(ended.left, turn);
}

v1::Event Machine::NewEvent(absl::string_view kind,
                            std::optional<quota::TenantId> tenant) const {
  v1::Event event;
  event.set_kind(std::string(kind));
  if (tenant.has_value()) {
    if (const Tenant* known = state_.tenants.Find(*tenant))
      event.set_tenant(known->policy.name);
  }
  return event;
}

// Who could be served by that is looked at again. (What changes of a lease,
// ReclaimIndex::Touch says.)
void Machine::MarkChanged(const quota::Event& event) {
  if (const auto* quota = std::get_if<quota::QuotaSet>(&event)) {
    state_.reclaim.MarkChanged(quota->pool, quota->tenant);
  } else if (const auto* tenant = std::get_if<quota::TenantSet>(&event)) {
    for (const auto& [id, pool] : state_.pools)
      state_.reclaim.MarkChanged(id, tenant->tenant);
  } else if (const auto* owed = std::get_if<quota::UnreturnedChanged>(&event)) {
    state_.reclaim.MarkChanged(owed->pool, owed->tenant);
  } else if (const auto* set = std::get_if<quota::PoolSet>(&event)) {
    state_.reclaim.MarkChanged(set->pool);
  } else if (const auto* drain = std::get_if<quota::PoolDrain>(&event)) {
    state_.reclaim.MarkChanged(drain->pool);
  } else if (const auto* missing = std::get_if<quota::MissingChanged>(&event)) {
    state_.reclaim.MarkChanged(missing->pool);
  }
}

// One step at a time, and none beside a lease being made: the device's one
// worker is never busy for long when a request comes. Nor while bytes come back
// piece by piece for a request: they are its.
bool Machine::MayRefill(const Pool& pool) const {
  return pool.jobs == 0 &&
         state_.reclaim.IncomingBytes(pool.id, {}, false) == 0;
}

quota::Instant Machine::NextDue(quota::Instant now) const {
  quota::Instant due =
      state_.engine.NextDeadline().value_or(quota::Instant::Max());
  due = std::min(due, ReclaimDue());
  for (const auto& [id, pool] : state_.pools) {
    if (pool->lost) continue;
    due = std::min(due, pool->next_audit);
    // What stands in the way of a refill looks again when it is over.
    const auto expiry = pool->slabs.NextExpiry();
    if (expiry.has_value() && MayRefill(*pool))
      due = std::min(due, std::max(*expiry, pool->refill_after));
  }
  return std::max(due, now);
}

void Machine::Tick(Turn& turn) { Tell(quota::Tick{}, turn); }

void Machine::Settle(Turn& turn) {
  const quota::Instant now = turn.now();
  state_.look_budget.BeginTurn(now);
  Drain(turn);
  MaintainPools(turn);
  CheckDying(now);
  CheckOverdue(turn);
  Drain(turn);
  CheckPauses(turn);
  Drain(turn);
  ExpireRestores(turn);
  ExpireAttaches(turn);
  WatchGates(now);
  Drain(turn);
  for (auto& [id, pool] : state_.pools) {
    // Each round serves one request; what it takes is incoming for the next.
    for (int round = 0; round < 16; ++round) {
      const bool more = ServeShortage(pool.get(), now, turn);
      Drain(turn);
      if (!more) break;
    }
  }
  ServeStanding(now, turn);
  Drain(turn);
  CheckDepartures(now, turn);
  BackAhead(now, turn);
  Drain(turn);
  // A lease that was taken last may have made its session's Restore larger.
  if (state_.engine.waiting() == 0) return;
  for (auto& [id, pool] : state_.pools) {
    const bool idle = pool->replan_at == quota::Instant::Max();
    if (idle && ShortageIn(state_, id, true).has_value())
      pool->replan_at = turn.now();
  }
}

void Machine::BeginDrain(absl::Duration deadline, Turn& turn) {
  if (state_.drain_until.has_value()) return;
  state_.drain_until = turn.wall() + deadline;
  v1::Event event = NewEvent("draining", std::nullopt);
  event.set_message(
      "no new grants; sessions are asked to release what they hold");
  turn.Publish(std::move(event));
  for (const auto& [id, pool] : state_.pools)
    Tell(quota::PoolDrain{id, true}, turn);
  for (const auto& [id, session] : state_.sessions) {
    if (!session->tenant.has_value()) continue;
    v1::BrokerMessage message;
    message.mutable_draining()->mutable_remaining()->set_seconds(
        absl::ToInt64Seconds(deadline));
    Say(session.get(), std::move(message), turn);
  }
}

}  // namespace gmb::broker
