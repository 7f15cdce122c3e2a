// The end of a turn. The one page that says who reacts to what: the engine's
// answers, the facts, and what is due.
#include <optional>
#include <utility>
#include <variant>

#include "broker/machine/machine.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {

void Machine::Settle(Turn& turn) {
  lookout_.BeginTurn(turn.now());
  Drain(turn);
  DoWhatIsDue(turn);
  Recorder(state_).Write(&turn.records());
}

void Machine::Drain(Turn& turn) {
  // A grant is planned with the capacity of now.
  const auto sync = [this] {
    if (quota_.TakeTold()) pools_.SyncCapacities();
  };
  sync();
  while (const Work* work = turn.NextWork()) {
    std::visit([&](const auto& piece) { React(piece, turn); }, *work);
    sync();
  }
}

// A request may have been given up since the engine decided. Of such:
// Granted is given back (OnGranted), Restored is carried out, for it is charged
// (OnRestored), Denied and Waiting have nobody left to be told.
void Machine::React(const quota::Effect& effect, Turn& turn) {
  if (const auto* granted = std::get_if<quota::Granted>(&effect)) {
    requests_.OnGranted(*granted, turn);
  } else if (const auto* denied = std::get_if<quota::Denied>(&effect)) {
    requests_.OnDenied(*denied, turn);
    waker_.OnDenied(*denied, turn);
  } else if (const auto* waiting = std::get_if<quota::Waiting>(&effect)) {
    requests_.OnWaiting(*waiting, turn);
  } else if (const auto* restored = std::get_if<quota::Restored>(&effect)) {
    waker_.OnRestored(*restored, turn);
  } else if (const auto* changed = std::get_if<quota::BudgetChanged>(&effect)) {
    sessions_.OnBudgetChanged(*changed, turn);
  } else if (const auto* applied = std::get_if<quota::QuotaApplied>(&effect)) {
    v1::Event event = NewEvent(state_, "quota_applied", applied->tenant);
    event.set_device(state_.PoolAt(applied->pool).uuid());
    turn.Publish(std::move(event));
  } else if (const auto* pending = std::get_if<quota::QuotaPending>(&effect)) {
    v1::Event event = NewEvent(state_, "quota_pending", pending->tenant);
    event.set_device(state_.PoolAt(pending->pool).uuid());
    event.set_bytes(pending->remaining_bytes);
    turn.Publish(std::move(event));
  }
}

// A lease, or a session, may have ended since: who reacts looks for it.
void Machine::React(const Fact& fact, Turn& turn) {
  if (const auto* settled = std::get_if<LeaseSettled>(&fact)) {
    waker_.AdvanceUsersOf({&settled->lease, 1}, turn);
  } else if (const auto* failed = std::get_if<MoveFailed>(&fact)) {
    waker_.OnMoveFailed(*failed, turn);
  } else if (const auto* put_off = std::get_if<RestorePutOff>(&fact)) {
    recalls_.PutOff(put_off->lease, turn);
  } else if (const auto* left = std::get_if<LeaseLeft>(&fact)) {
    gatekeeper_.OnLeaseLeft(*left);
    waker_.OnLeaseLeft(*left, turn);
  } else if (const auto* lends = std::get_if<LendsAgain>(&fact)) {
    requests_.OnLendsAgain(*lends, turn);
  } else if (const auto* ended = std::get_if<SessionEnded>(&fact)) {
    gatekeeper_.OnSessionEnded(*ended, turn);
    waker_.OnSessionEnded(*ended, turn);
  } else if (const auto* made = std::get_if<SlabsMade>(&fact)) {
    Lease* lease = &state_.LeaseAt(made->lease);
    const bool comes_back = lease->move->residence == Residence::kRestoring;
    if (comes_back && !lease->life->doomed) {
      mover_.OnPrepared(lease, *made, turn);
    } else {
      leases_.OnPrepared(lease, *made, turn);
    }
  } else if (const auto* over = std::get_if<CopiesOver>(&fact)) {
    leases_.EndLease(over->lease, /*reuse=*/false, turn);
  } else if (const auto* not_made = std::get_if<NotMade>(&fact)) {
    requests_.OnNotMade(*not_made, turn);
  }
}

// In this order, each with what follows from it.
void Machine::DoWhatIsDue(Turn& turn) {
  const quota::Instant now = turn.now();
  EndWhatIsLeft(turn);
  Drain(turn);
  pools_.MaintainPools(turn);
  requests_.AskPutOff(turn);
  recalls_.EndPutOffs(turn);
  Drain(turn);
  sessions_.CheckDying(now);
  debts_.ForgetPaid(turn);
  mover_.CheckOverdue(turn);
  Drain(turn);
  gatekeeper_.CheckPauses(turn);
  Drain(turn);
  waker_.ExpireRestores(turn);
  sharing_.ExpireAttaches(turn);
  reclaimer_.WatchGates(now);
  Drain(turn);
  requests_.SoftenSome(turn);
  Drain(turn);
  Reclaim(turn);
  operators_.CheckDepartures(now, turn);
  backer_.BackAhead(now, turn);
  Drain(turn);
  // A lease that was taken last may have made its session's Restore larger.
  reclaimer_.NoticeShortages(now);
}

// Nobody has to give way while ended sessions still have leases: within a few
// turns these are back.
void Machine::Reclaim(Turn& turn) {
  if (!state_.ended_sessions->empty()) return;
  const quota::Instant now = turn.now();
  for (const auto& [id, pool] : *state_.pools) {
    // Each round serves one request; what it takes is incoming for the next.
    for (int round = 0; round < 16; ++round) {
      const bool more = reclaimer_.ServeShortage(pool.get(), now, turn);
      Drain(turn);
      if (!more) break;
    }
    recalls_.BeginReturns(*pool, turn);
    Drain(turn);
  }
  reclaimer_.ServeStanding(now, turn);
  Drain(turn);
}

}  // namespace gmb::broker
