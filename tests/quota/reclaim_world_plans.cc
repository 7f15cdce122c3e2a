// The world's reclaim: plans, and how they are carried out.
#include <algorithm>
#include <utility>

#include "tests/quota/reclaim_world.h"

namespace gmb::quota {

Snapshot ReclaimWorld::TakeSnapshot() {
  snapshot_leases_.clear();
  std::map<SessionId, uint32_t> owed;
  std::map<TenantId, uint32_t> owed_by_tenant;
  for (const auto& [id, row] : rows_) {
    if (row.unmap_deadline > now_) continue;
    ++owed[row.session];
    ++owed_by_tenant[row.tenant];
  }
  for (const auto& [id, row] : rows_) {
    snapshot_leases_.push_back(row);
    snapshot_leases_.back().owed_by_process = owed[row.session];
    // All leases of a session that is coming back are left alone; one that
    // still waits for that may lose the others as well.
    LeaseRow& copy = snapshot_leases_.back();
    const Session& session = sessions_.at(row.session);
    for (const LeaseId lease : session.leases)
      copy.session_bytes += rows_.at(lease).bytes;
    if (session.usual_gap > Nanoseconds(0))
      copy.usual_gap = std::max(session.usual_gap, now_ - *session.used_at);
    copy.busy = row.busy || session.returning;
    copy.no_pause_until = session.not_paused_before;
  }
  snapshot_tenants_.clear();
  for (const auto& [id, setup] : tenants_) {
    for (const PoolId pool : engine_.Pools()) {
      const TenantPoolView view = *engine_.TenantPool(id, pool);
      snapshot_tenants_.push_back(
          {.tenant = id,
           .pool = pool,
           .guarantee_bytes = view.effective_guarantee_bytes,
           .resident_bytes = view.resident_bytes,
           .weight = setup.quota.weight,
           .may_terminate = setup.may_terminate,
           .owed_answers = owed_by_tenant[id],
           .min_residency = setup.min_residency,
           .pause_grace = setup.pause_grace});
    }
  }
  return {snapshot_leases_, snapshot_tenants_, 0};
}

void ReclaimWorld::LookForShortages() {
  if (!options_.reclaim || looking_ || stopped_) return;
  looking_ = true;
  for (const PoolId pool : engine_.Pools()) {
    while (const auto shortage = engine_.NextShortage(pool, incoming_[pool])) {
      if (plans_.contains(shortage->request)) break;  // one at a time
      Demand demand{.cause = Cause::kWithinGuarantee,
                    .tenant = shortage->tenant,
                    .session = shortage->session,
                    .needs = {},
                    .deadline = shortage->deadline};
      Instant collects_from = Instant::Max();
      for (const PoolId other : engine_.Pools()) {
        const auto part = engine_.NextShortage(other, incoming_[other]);
        if (!part || part->request != shortage->request) continue;
        demand.needs.push_back({other, part->lacking_bytes});
        if (!part->within_guarantee) demand.cause = Cause::kBorrow;
        collects_from = std::min(collects_from, part->collects_from);
      }
      demand.collects = collects_from <= now_;
      const Snapshot snapshot = TakeSnapshot();
      Plan plan = options_.plan
                      ? options_.plan(snapshot, demand, now_)
                      : MakePlan(snapshot, demand, now_, options_.planner);
      if (plan.victims.empty()) {
        if (!demand.collects) {
          plan.retry_at = std::min(plan.retry_at, collects_from);
        }
        Instant& retry_at = retry_at_[pool];
        if (plan.retry_at != Instant::Max() && plan.retry_at > now_ &&
            (retry_at <= now_ || plan.retry_at < retry_at)) {
          retry_at = plan.retry_at;
          At(plan.retry_at, [] {});  // every step looks again
        }
        break;
      }
      ++figures_.plans;
      if (watch_ && !watch_(snapshot, demand, now_, plan)) {
        stopped_ = true;
        return;
      }
      CarryOut(shortage->request, plan);
    }
  }
  looking_ = false;
}

void ReclaimWorld::CarryOut(RequestId request, const Plan& plan) {
  plans_[request] = plan.victims.size();
  for (const Victim& victim : plan.victims) {
    Abandon(victim.lease);  // overdue for another request: to be terminated now
    rows_.at(victim.lease).busy = true;
    victims_[victim.lease] = {victim.pool, request};
    incoming_[victim.pool] += victim.bytes;
  }
  for (const Victim& victim : plan.victims) {
    const auto begin = [this, victim, request] {
      Begin(victim, request, victim.pool);
    };
    At(victim.start, begin);
  }
}

void ReclaimWorld::Abandon(LeaseId lease) {
  const auto victim = victims_.find(lease);
  if (victim == victims_.end()) return;
  const auto [pool, request] = victim->second;
  victims_.erase(victim);
  going_ahead_.erase(lease);
  incoming_.at(pool) -= rows_.at(lease).bytes;
  rows_.at(lease).busy = false;
  const auto plan = plans_.find(request);
  if (plan != plans_.end() && --plan->second == 0) plans_.erase(plan);
}

void ReclaimWorld::Begin(const Victim& victim, RequestId request, PoolId pool) {
  const auto under_way = victims_.find(victim.lease);
  if (under_way == victims_.end() || under_way->second.second != request) {
    return;  // released meanwhile
  }
  Session& session = sessions_.at(victim.session);
  const uint64_t others = incoming_.at(pool) - victim.bytes;
  if (!engine_.NextShortage(pool, others)) {
    Abandon(victim.lease);  // no longer lacking
    TryToWork(victim.session);
    return;
  }
  if (victim.step == Step::kTerminate) {
    Kill(victim.session);
    return;
  }
  if (session.gate == Gate::kParked || session.gate == Gate::kClosed) {
    if (session.returning) {
      Abandon(victim.lease);
    } else {
      Evict(victim.lease, victim.deadline);
    }
  } else if (victim.step == Step::kPause) {
    Pause(victim);
  } else {
    Abandon(victim.lease);  // woke up before its turn
  }
}

void ReclaimWorld::Evict(LeaseId lease, Instant deadline) {
  LeaseRow& row = rows_.at(lease);
  Session& session = sessions_.at(row.session);
  SetGate(session, Gate::kClosed);
  row.busy = true;
  row.unmap_deadline = deadline;
  if (session.manners == Manners::kNeverUnmaps) {
    At(deadline, [this, lease] { FailEviction(lease); });
    return;
  }
  const uint64_t copied =
      row.contents == Contents::kPreserve ? row.bytes - row.backed_bytes : 0;
  figures_.copied_out_bytes += copied;
  const Instant saved = copied > 0 ? Copy(Way::kOut, copied) : now_;
  const auto handles = static_cast<int64_t>(HandlesOf(row.bytes));
  const Instant gone =
      saved + options_.costs.round_trip + handles * options_.costs.unmap_handle;
  const uint64_t nth = ++evictions_begun_[lease];
  At(gone, [this, lease, nth] {
    if (evictions_begun_[lease] == nth) FinishEviction(lease);
  });
}

void ReclaimWorld::FinishEviction(LeaseId lease) {
  if (!victims_.contains(lease)) return;
  LeaseRow& row = rows_.at(lease);
  ++figures_.evictions;
  figures_.evicted_bytes += row.bytes;
  row.evicted = true;
  row.backed_bytes = 0;
  row.unmap_deadline = Instant::Max();
  const SessionId session = row.session;
  NoteFreed(row.pool, row.bytes);
  Abandon(lease);
  Tell(Evicted{lease});
  TryToWork(session);
}

void ReclaimWorld::FailEviction(LeaseId lease) {
  if (!victims_.contains(lease)) return;
  LeaseRow& row = rows_.at(lease);
  const SessionId id = row.session;
  if (tenants_.at(row.tenant).may_terminate) {
    // It owes its answer: whoever lacks bytes has it killed, or else its owner.
    Abandon(lease);
    At(now_ + 2 * options_.planner.kill_grace, [this, id] { Kill(id); });
    return;
  }
  row.back_off_until = now_ + options_.back_off;
  row.unmap_deadline = Instant::Max();
  Abandon(lease);
  SetGate(sessions_.at(id), Gate::kParked);
  TryToWork(id);
}

void ReclaimWorld::Pause(const Victim& victim) {
  Session& session = sessions_.at(victim.session);
  At(victim.deadline, [this, lease = victim.lease] { WithdrawPause(lease); });
  if (std::exchange(session.pausing, true)) return;
  ++figures_.pauses;
  Tell(SessionPausing{victim.session, true});
  if (session.working > 0) return;
  At(now_ + options_.costs.round_trip,
     [this, id = victim.session, epoch = session.epoch] { Park(id, epoch); });
}

void ReclaimWorld::WithdrawPause(LeaseId lease) {
  if (!victims_.contains(lease)) return;
  LeaseRow& row = rows_.at(lease);
  Session& session = sessions_.at(row.session);
  if (!session.pausing) return;  // it parked in time
  ++figures_.pauses_withdrawn;
  session.pausing = false;
  session.not_paused_before = now_ + options_.back_off;
  const SessionId id = row.session;
  for (const LeaseId other : LeasesOf(id)) Abandon(other);
  Tell(SessionPausing{id, false});
  TryToWork(id);
}

void ReclaimWorld::Kill(SessionId id) {
  if (!IsAlive(id)) return;
  ++figures_.kills;
  At(now_ + options_.costs.death, [this, id] { Close(id); });
}

void ReclaimWorld::Tick() {
  At(now_ + options_.tick, [this] { Tick(); });
  if (options_.use_forecast) RestoreAhead();
  if (options_.back_ahead) {
    for (const PoolId pool : engine_.Pools()) BackAhead(pool);
  }
  for (const PoolId pool : engine_.Pools()) GoAhead(pool);
}

void ReclaimWorld::BackAhead(PoolId pool) {
  if (backing_) return;
  const Snapshot snapshot = TakeSnapshot();
  uint64_t wanted = ~uint64_t{0};
  if (options_.use_forecast) {
    // Tenants will want this much beyond what they have, and what is free.
    const PoolView view = *engine_.Pool(pool);
    uint64_t lacking = 0;
    for (auto& [tenant, forecast] : forecasts_) {
      const uint64_t peak = forecast.PeakBytes(now_);
      const uint64_t have = engine_.TenantPool(tenant, pool)->resident_bytes;
      lacking += peak - std::min(peak, have);
    }
    const uint64_t free = view.capacity_bytes - view.charged_bytes;
    wanted = lacking - std::min(lacking, free);
  }
  const auto step =
      NextToBack(snapshot, now_, engine_.waiting() > 0,
                 budget_.AvailableBytes(now_), options_.backing, wanted);
  if (!step) return;
  budget_.Spend(step->bytes, now_);
  LeaseRow& row = rows_.at(step->lease);
  row.busy = true;
  backing_ = true;
  figures_.copied_out_bytes += step->bytes;
  figures_.backed_ahead_bytes += step->bytes;
  const uint64_t epoch = sessions_.at(row.session).epoch;
  At(Copy(Way::kOut, step->bytes),
     [this, pool, lease = step->lease, bytes = step->bytes, epoch] {
       backing_ = false;
       const auto done = rows_.find(lease);
       if (done == rows_.end()) return;
       done->second.busy = false;
       // True only if nobody has been in since.
       if (sessions_.at(done->second.session).epoch == epoch) {
         done->second.backed_bytes += bytes;
       }
       BackAhead(pool);
     });
}

void ReclaimWorld::RestoreAhead() {
  if (engine_.waiting() > 0) return;
  for (auto& [id, session] : sessions_) {
    if (session.gate != Gate::kClosed || session.restoring) continue;
    bool wanted = !session.leases.empty();
    uint64_t bytes = 0;
    PoolId pool;
    for (const LeaseId lease : session.leases) {
      const LeaseRow& row = rows_.at(lease);
      if (row.busy) wanted = false;
      if (row.evicted) bytes += row.bytes;
      pool = row.pool;
    }
    if (!wanted || bytes == 0) continue;
    const PoolView view = *engine_.Pool(pool);
    const uint64_t resident =
        engine_.TenantPool(session.tenant, pool)->resident_bytes;
    const uint64_t peak = forecasts_.at(session.tenant).PeakBytes(now_);
    if (peak < resident + bytes) continue;
    if (view.capacity_bytes - view.charged_bytes < bytes) continue;
    AskToRestore(id);
    return;
  }
}

}  // namespace gmb::quota
