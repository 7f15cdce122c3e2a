// Sessions that are paused, so that they park (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/turn.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// Who did not park in time is left alone for so long.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);
constexpr quota::Nanoseconds kPauseLook = std::chrono::milliseconds(1);

}  // namespace

void Machine::StartPause(Lease* lease, quota::Instant until, Turn& turn) {
  for (Session* user : UsersOf(state_, *lease)) {
    if (user->gate->closed()) continue;
    lease->awaits_pause = true;  // of one at least
    state_.reclaim.Touch(state_, *lease);
    state_.pauses_at = std::min(state_.pauses_at, turn.now() + kPauseLook);
    if (user->gate->pausing_until().has_value()) continue;
    user->gate->Pause(until);
    state_.pausing.insert(user->id);
    v1::Event event = NewEvent("pause_started", user->tenant);
    event.set_session_id(user->id);
    turn.Publish(std::move(event));
    v1::BrokerMessage message;
    message.mutable_pausing();
    Say(user, std::move(message), turn);
    Tell(quota::SessionPausing{quota::SessionId{user->id}, true}, turn);
  }
}

// Every millisecond: a gate says nothing by itself. And at once when the last
// request within a guarantee has its bytes, or another lacks some.
void Machine::CheckPauses(Turn& turn) {
  const quota::Instant now = turn.now();
  bool flipped = false;
  for (auto& [id, pool] : state_.pools) {
    if (!state_.reclaim.AnyAwaitsPause(id)) continue;
    const bool lacks = LacksWithinGuarantee(id);
    flipped |= std::exchange(pool->guarantee_lacks, lacks) != lacks;
  }
  if (flipped) state_.next_pause = 0;
  if (state_.pausing.empty() || (!flipped && now < state_.pauses_at)) return;
  while (state_.look_budget.any_left()) {
    const auto next = state_.pausing.lower_bound(state_.next_pause);
    if (next == state_.pausing.end()) {
      state_.next_pause = 0;
      state_.pauses_at = now + kPauseLook;
      return;
    }
    // One that it is bound to may end it as well.
    const uint64_t id = *next;
    state_.next_pause = id + 1;
    CheckPause(&state_.SessionAt(id), now, turn);
  }
  state_.pauses_at = now;  // the next turn goes on
}

// Nobody is paused for a mere borrower, nor kept so when the one whose
// guarantee it was for has gone.
bool Machine::LacksWithinGuarantee(quota::PoolId pool) const {
  const auto shortage = ShortageIn(state_, pool, false);
  return shortage.has_value() && shortage->within_guarantee;
}

// Groups bind their members, a shared lease that is to go those who use it.
Machine::Pause Machine::PauseOf(Session* session) const {
  Pause pause;
  pause.sessions = state_.groups.Members(session);
  const auto add = [](auto& list, auto* item) {
    if (std::find(list.begin(), list.end(), item) == list.end())
      list.push_back(item);
  };
  for (size_t i = 0; i < pause.sessions.size(); ++i) {
    const Session* bound = pause.sessions[i];
    for (const quota::LeaseId id : bound->leases) {
      Lease* lease = &state_.LeaseAt(id);
      if (!lease->awaits_pause) continue;
      add(pause.leases, lease);
      for (Session* user : UsersOf(state_, *lease)) add(pause.sessions, user);
    }
  }
  return pause;
}

void Machine::CheckPause(Session* session, quota::Instant now, Turn& turn) {
  const Pause pause = PauseOf(session);
  bool needed = false;
  bool busy = false;
  for (const Lease* lease : pause.leases) {
    needed |= LacksWithinGuarantee(lease->request.pool);
    // Copied ahead of need, or mapped by one who came back meanwhile.
    busy |= lease->copies > 0 || lease->asked() ||
            lease->residence != Residence::kResident;
  }
  quota::Gate least = quota::Gate::kClosed;
  quota::Instant until = quota::Instant::Max();
  for (const Session* bound : pause.sessions) {
    least = std::min(least, bound->gate->Look(now));
    until = std::min(until, bound->gate->pausing_until().value_or(until));
  }
  if (needed && !busy && least >= quota::Gate::kParked &&
      CloseAll(pause.sessions)) {
    EndPause(pause.sessions, turn);
    for (Lease* lease : pause.leases) {
      StartEviction(lease, now + state_.options.planner.unmap_grace,
                    state_.TenantAt(lease->tenant).policy.reclaim.may_terminate,
                    turn);
    }
  } else if (!needed || until == quota::Instant::Max() || now >= until) {
    WithdrawPause(session, pause, needed, turn);
  }
}

void Machine::WithdrawPause(Session* session, const Pause& pause, bool needed,
                            Turn& turn) {
  v1::Event event = NewEvent("pause_withdrawn", session->tenant);
  event.set_session_id(session->id);
  event.set_message(needed ? "a scope did not end in time"
                           : "the memory is no longer needed");
  turn.Publish(std::move(event));
  if (needed) {
    for (Lease* lease : pause.leases)
      lease->back_off_until = turn.now() + kBackOff;
  }
  for (Session* bound : pause.sessions) bound->gate->Withdraw();
  EndPause(pause.sessions, turn);
  for (Session* bound : pause.sessions) AdvanceRestore(bound, turn);
  for (Lease* lease : pause.leases) ServeAttaches(lease, turn);
}

// A session has left them, and with it perhaps the last pause that leases of
// theirs waited for.
void Machine::ForgetPausesOf(const std::vector<Session*>& sessions,
                             Turn& turn) {
  std::vector<quota::LeaseId> freed;
  for (const Session* session : sessions) {
    for (const quota::LeaseId id : session->leases) {
      Lease& lease = state_.LeaseAt(id);
      const std::vector<Session*> users = UsersOf(state_, lease);
      const bool paused =
          std::any_of(users.begin(), users.end(), [this](const Session* user) {
            return state_.pausing.contains(user->id);
          });
      if (paused || !lease.awaits_pause) continue;
      lease.awaits_pause = false;
      state_.reclaim.Touch(state_, lease);
      freed.push_back(id);
    }
  }
  AdvanceUsersOf(freed, turn);
}

void Machine::EndPause(const std::vector<Session*>& sessions, Turn& turn) {
  for (const Session* session : sessions) {
    for (const quota::LeaseId id : session->leases) {
      Lease& lease = state_.LeaseAt(id);
      if (std::exchange(lease.awaits_pause, false))
        state_.reclaim.Touch(state_, lease);
    }
    if (state_.pausing.erase(session->id) == 0) continue;
    Tell(quota::SessionPausing{quota::SessionId{session->id}, false}, turn);
  }
}

}  // namespace gmb::broker
