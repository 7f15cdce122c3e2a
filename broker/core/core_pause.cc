// Sessions that are paused, so that they park (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// Who did not park in time is left alone for so long.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

}  // namespace

void Core::StartPause(Lease* lease, quota::Instant until, Afterwards* after) {
  for (Session* user : UsersOf(*lease)) {
    if (user->gate->closed()) continue;
    lease->awaits_pause = true;  // of one at least
    if (user->gate->pausing_until().has_value()) continue;
    user->gate->Pause(until);
    pausing_.insert(user->id);
    v1::Event event = NewEvent("pause_started", user->tenant);
    event.set_session_id(user->id);
    deps_.events->Publish(std::move(event));
    v1::BrokerMessage message;
    message.mutable_pausing();
    Say(user, std::move(message), after);
    Tell(quota::SessionPausing{quota::SessionId{user->id}, true}, after);
  }
}

void Core::CheckPauses(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  const std::vector<uint64_t> pausing(pausing_.begin(), pausing_.end());
  for (const uint64_t id : pausing) {
    // One that it is bound to may have ended it.
    if (pausing_.contains(id)) CheckPause(sessions_.at(id), now, after);
  }
}

// Groups bind their members, a shared lease that is to go those who use it.
Core::Pause Core::PauseOf(Session* session) const {
  Pause pause;
  pause.sessions = groups_.Members(session);
  const auto add = [](auto& list, auto* item) {
    if (std::find(list.begin(), list.end(), item) == list.end())
      list.push_back(item);
  };
  for (size_t i = 0; i < pause.sessions.size(); ++i) {
    const Session* bound = pause.sessions[i];
    for (const quota::LeaseId id : bound->leases) {
      Lease* lease = leases_.at(id).get();
      if (!lease->awaits_pause) continue;
      add(pause.leases, lease);
      for (Session* user : UsersOf(*lease)) add(pause.sessions, user);
    }
  }
  return pause;
}

void Core::CheckPause(Session* session, quota::Instant now, Afterwards* after) {
  const Pause pause = PauseOf(session);
  bool needed = false;
  bool busy = false;
  for (const Lease* lease : pause.leases) {
    // Nobody is paused for a mere borrower, nor kept so when the one whose
    // guarantee it was for has gone.
    const auto shortage = ShortageIn(lease->request.pool, false);
    needed |= shortage.has_value() && shortage->within_guarantee;
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
    EndPause(pause.sessions, after);
    for (Lease* lease : pause.leases) {
      StartEviction(lease, now + options_.planner.unmap_grace,
                    tenants_.at(lease->tenant).policy.reclaim.may_terminate,
                    after);
    }
  } else if (!needed || until == quota::Instant::Max() || now >= until) {
    WithdrawPause(session, pause, needed, after);
  }
}

void Core::WithdrawPause(Session* session, const Pause& pause, bool needed,
                         Afterwards* after) {
  v1::Event event = NewEvent("pause_withdrawn", session->tenant);
  event.set_session_id(session->id);
  event.set_message(needed ? "a scope did not end in time"
                           : "the memory is no longer needed");
  deps_.events->Publish(std::move(event));
  if (needed) {
    for (Lease* lease : pause.leases)
      lease->back_off_until = deps_.clock->Now() + kBackOff;
  }
  for (Session* bound : pause.sessions) bound->gate->Withdraw();
  EndPause(pause.sessions, after);
  for (Session* bound : pause.sessions) AdvanceRestore(bound, after);
  for (Lease* lease : pause.leases) ServeAttaches(lease, after);
}

void Core::EndPause(const std::vector<Session*>& sessions, Afterwards* after) {
  for (const Session* session : sessions) {
    for (const quota::LeaseId id : session->leases) {
      leases_.at(id)->awaits_pause = false;
    }
    if (pausing_.erase(session->id) == 0) continue;
    Tell(quota::SessionPausing{quota::SessionId{session->id}, false}, after);
  }
}

}  // namespace gmb::broker
