// Sessions that are paused, so that they park (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "broker/machine/gatekeeper.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/pause_look.h"
#include "broker/machine/reclaim_rows.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// Between two rounds: a fiftieth of the time is spent on them at most, unless
// very many are paused.
constexpr quota::Nanoseconds kPauseLook = std::chrono::milliseconds(1);
constexpr quota::Nanoseconds kLongestLook = std::chrono::milliseconds(20);
constexpr quota::Nanoseconds kAPausedLease = std::chrono::microseconds(2);
// After a pause that failed.
constexpr quota::Nanoseconds kSpared = std::chrono::seconds(10);
// Of leases and sessions, in one turn.
constexpr uint64_t kMostLooks = 1024;

// Nobody is paused for a mere borrower, nor kept so when the one whose
// guarantee it was for has gone.
bool LacksWithinGuarantee(const State& state, quota::PoolId pool) {
  const auto shortage = ShortageIn(state, pool, false);
  return shortage.has_value() && shortage->within_guarantee;
}

// None: it lasts.
std::optional<PauseEnd> EndOf(bool needed, const PauseLook& look) {
  if (!needed) return PauseEnd::kNotNeeded;
  if (look.least() == quota::Gate::kOff) return PauseEnd::kInVain;
  if (look.IsOver()) return PauseEnd::kTooLate;
  if (look.AnyHeldUp()) return PauseEnd::kHeldUp;
  return std::nullopt;
}

absl::string_view WhyEnded(PauseEnd end) {
  switch (end) {
    case PauseEnd::kHeldUp:
      return "another of its group had parked and waits to go on";
    case PauseEnd::kTooLate:
      return "a scope did not end in time";
    case PauseEnd::kInVain:
      return "the gate of another of its group is off";
    case PauseEnd::kNotNeeded:
      break;
  }
  return "the memory is no longer needed";
}

}  // namespace

void Gatekeeper::StartPause(Lease* lease, quota::Instant until, Turn& turn) {
  for (Session* user : UsersOf(state_, *lease)) {
    if (user->gate->closed()) continue;
    lease->awaits_pause.Edit({}) = true;  // of one at least
    index_.Touch(lease);
    state_.pauses_at.Edit({}) =
        std::min(*state_.pauses_at, turn.now() + kPauseLook);
    if (user->gate->pausing_until().has_value()) continue;
    gates_.Pause(user, until);
    state_.pausing.Edit({}).insert(user->id);
    v1::Event event = NewEvent(state_, "pause_started", user->tenant);
    event.set_session_id(user->id);
    turn.Publish(std::move(event));
    v1::BrokerMessage message;
    message.mutable_pausing();
    sessions_.Say(user, std::move(message), turn);
    quota_.Tell(quota::SessionPausing{quota::SessionId{user->id}, true}, turn);
  }
}

// Every millisecond, or less often if they are many: a gate says nothing by
// itself. And at once when the last request within a guarantee has its bytes,
// or another lacks some.
void Gatekeeper::CheckPauses(Turn& turn) {
  const quota::Instant now = turn.now();
  bool flipped = false;
  for (const auto& [id, pool] : *state_.pools) {
    if (!state_.reclaim->AnyAwaitsPause(id)) continue;
    const bool lacks = LacksWithinGuarantee(state_, id);
    flipped |= std::exchange(pool->guarantee_lacks.Edit({}), lacks) != lacks;
  }
  PauseRound& round = state_.pause_round.Edit({});
  if (flipped) round.next = 0;
  if (state_.pausing->empty() || (!flipped && now < *state_.pauses_at)) return;
  if (round.next == 0) {
    round.began_at = round.looks;
    round.looked_at.clear();
  }
  for (const uint64_t end = round.looks + kMostLooks; round.looks < end;) {
    const auto next = state_.pausing->lower_bound(round.next);
    if (next == state_.pausing->end()) {
      const auto looks = static_cast<int64_t>(round.looks - round.began_at);
      round.next = 0;
      state_.pauses_at.Edit({}) =
          now + std::clamp(looks * kAPausedLease, kPauseLook, kLongestLook);
      return;
    }
    // One that it is bound to may end it as well.
    const uint64_t id = *next;
    round.next = id + 1;
    round.looks += round.looked_at.contains(id)
                       ? 1
                       : CheckPause(&state_.SessionAt(id), now, turn);
  }
  state_.pauses_at.Edit({}) = now;  // the next turn goes on
}

// Groups bind their members, a shared lease that is to go those who use it.
Gatekeeper::Pause Gatekeeper::PauseOf(Session* session) const {
  Pause pause;
  pause.sessions = MembersOf(state_, session);
  absl::flat_hash_set<const Session*> bound_already(pause.sessions.begin(),
                                                    pause.sessions.end());
  absl::flat_hash_set<quota::LeaseId> shared;
  for (size_t i = 0; i < pause.sessions.size(); ++i) {
    const Session* bound = pause.sessions[i];
    pause.looks += 1 + bound->leases->size();
    for (const quota::LeaseId id : *bound->leases) {
      Lease* lease = &state_.LeaseAt(id);
      // One that was exported meanwhile stays.
      if (!*lease->awaits_pause || lease->exported()) continue;
      // Another's is found with its holder, whose group is bound with it.
      if (!lease->sharing->shared) {
        pause.leases.push_back(lease);
        continue;
      }
      if (!shared.insert(id).second) continue;
      pause.leases.push_back(lease);
      for (Session* user : UsersOf(state_, *lease)) {
        if (bound_already.insert(user).second) pause.sessions.push_back(user);
      }
    }
  }
  return pause;
}

uint64_t Gatekeeper::CheckPause(Session* session, quota::Instant now,
                                Turn& turn) {
  const Pause pause = PauseOf(session);
  absl::flat_hash_set<quota::PoolId> asked;
  bool needed = false;
  bool busy = false;
  for (const Lease* lease : pause.leases) {
    const quota::PoolId pool = lease->request.pool;
    if (!needed && asked.insert(pool).second)
      needed = LacksWithinGuarantee(state_, pool);
    // Copied ahead of need, or mapped by one who came back meanwhile.
    busy |= lease->copy->copies > 0 || lease->asked() ||
            lease->move->residence != Residence::kResident;
  }
  const PauseLook look(state_, pause.sessions, now);
  if (needed && !busy && look.least() >= quota::Gate::kParked &&
      gates_.CloseAll(pause.sessions)) {
    EndPause(pause.sessions, turn);
    for (Lease* lease : pause.leases) {
      mover_.StartEviction(
          lease, now + state_.options.planner.unmap_grace,
          state_.TenantAt(lease->tenant).policy.reclaim.may_terminate, turn);
    }
  } else if (const auto end = EndOf(needed, look)) {
    if (*end == PauseEnd::kTooLate || *end == PauseEnd::kHeldUp)
      OnPauseFailed(pause, look, *end, now);
    WithdrawPause(session, pause, *end, turn);
  }
  for (const Session* bound : pause.sessions)
    state_.pause_round.Edit({}).looked_at.insert(bound->id);
  return pause.looks;
}

// Another pause of those at work, for whatever lease, would come to the same
// end. Memory that has parked needs none and can be taken: others' now, theirs
// later. Where nobody is at work the leases themselves are in the way.
void Gatekeeper::OnPauseFailed(const Pause& pause, const PauseLook& look,
                               PauseEnd end, quota::Instant now) {
  if (look.least() >= quota::Gate::kParked) {
    for (Lease* lease : pause.leases) host_.LeaveAlone(lease, now);
    return;
  }
  for (Session* bound : pause.sessions) {
    if (!look.IsAtWork(*bound)) continue;
    const bool waited = end == PauseEnd::kHeldUp && look.IsWaitedIn(*bound);
    // Else its pause was others' to end, and has shown nothing of it.
    if (!waited && !look.HadItsTime(*bound)) continue;
    gates_.SparePauses(bound, now + kSpared);
    gates_.SetHeldUp(bound, waited ? bound->gate->held_up() + 1 : 0);
  }
}

void Gatekeeper::WithdrawPause(Session* session, const Pause& pause,
                               PauseEnd end, Turn& turn) {
  v1::Event event = NewEvent(state_, "pause_withdrawn", session->tenant);
  event.set_session_id(session->id);
  event.set_message(std::string(WhyEnded(end)));
  turn.Publish(std::move(event));
  for (Session* bound : pause.sessions) gates_.Withdraw(bound);
  EndPause(pause.sessions, turn);
  waker_.AdvanceRestores(IdsOf(pause.sessions), turn);
  for (Lease* lease : pause.leases) sharing_.ServeAttaches(lease, turn);
}

bool Gatekeeper::ForgetPauseOf(Lease* lease) {
  if (!*lease->awaits_pause) return false;
  const std::vector<Session*> users = UsersOf(state_, *lease);
  if (std::any_of(users.begin(), users.end(), [this](const Session* user) {
        return state_.pausing->contains(user->id);
      })) {
    return false;
  }
  lease->awaits_pause.Edit({}) = false;
  index_.Touch(lease);
  return true;
}

// A session has left them, and with it perhaps the last pause that leases of
// theirs waited for.
void Gatekeeper::ForgetPausesOf(const std::vector<Session*>& sessions,
                                Turn& turn) {
  std::vector<quota::LeaseId> freed;
  absl::flat_hash_set<quota::LeaseId> seen;
  for (const Session* session : sessions) {
    for (const quota::LeaseId id : *session->leases) {
      if (seen.insert(id).second && ForgetPauseOf(&state_.LeaseAt(id)))
        freed.push_back(id);
    }
  }
  waker_.AdvanceUsersOf(freed, turn);
}

void Gatekeeper::Forget(const Session& session) {
  state_.pausing.Edit({}).erase(session.id);
}

void Gatekeeper::EndPauseOf(Session* session, Turn& turn) {
  if (state_.pausing->empty()) return;
  // A gate that was closed for one of its leases is not paused any more, though
  // others still wait for the pause.
  if (session->gate->pausing_until().has_value()) gates_.Withdraw(session);
  EndPause({session}, turn);
}

void Gatekeeper::OnLeaseLeft(const LeaseLeft& left) {
  const auto lease = state_.leases->find(left.lease);
  if (lease != state_.leases->end()) ForgetPauseOf(lease->second.get());
}

void Gatekeeper::OnSessionEnded(const SessionEnded& ended, Turn& turn) {
  for (const quota::LeaseId id : ended.left) OnLeaseLeft({0, id});
  std::vector<Session*> members;
  for (const uint64_t id : ended.members) {
    if (Session* member = state_.sessions->Find(id)) members.push_back(member);
  }
  ForgetPausesOf(members, turn);
}

void Gatekeeper::EndPause(const std::vector<Session*>& sessions, Turn& turn) {
  for (const Session* session : sessions) {
    for (const quota::LeaseId id : *session->leases) {
      Lease* lease = &state_.LeaseAt(id);
      if (std::exchange(lease->awaits_pause.Edit({}), false))
        index_.Touch(lease);
    }
    if (state_.pausing.Edit({}).erase(session->id) == 0) continue;
    quota_.Tell(quota::SessionPausing{quota::SessionId{session->id}, false},
                turn);
  }
}

}  // namespace gmb::broker
