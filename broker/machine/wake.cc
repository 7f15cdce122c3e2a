// Sessions that want their memory back, and when their gates reopen.
#include <algorithm>
#include <utility>
#include <vector>

#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostAtOnce = 64;

}  // namespace

void Machine::Restore(Session* session, uint64_t client_id,
                      const v1::Restore& restore, Turn& turn) {
  if (session->gate == nullptr) {
    return Refuse(session, client_id,
                  proto::MakeError(v1::BAD_STATE, "this session has no gate"),
                  turn);
  }
  if (session->restores.size() >= state_.options.max_requests_per_session) {
    return Refuse(session, client_id,
                  TooManyRequests(state_.options.max_requests_per_session),
                  turn);
  }
  const quota::Instant until = turn.now() + SaneWait(restore.wait());
  session->restores.emplace(client_id, until);
  state_.restore_times.emplace(until, session->id, client_id);
  state_.waking.insert(session->id);
  AdvanceRestore(session, turn);
}

// The next step towards gates that are open, if there is one: everything that
// ends a step of a session's leases comes here.
void Machine::AdvanceRestore(Session* session, Turn& turn) {
  if (session->gate == nullptr) return;
  const std::vector<Session*> members = state_.groups.Members(session);
  const auto any = [&](auto holds) {
    return std::any_of(members.begin(), members.end(), holds);
  };
  if (any([](const Session* m) { return m->restoring.has_value(); })) return;
  if (!any([](const Session* m) { return m->gate->closed(); })) {
    if (!any([](const Session* m) {
          return m->gate->pausing_until().has_value();
        })) {
      AnswerMembers(session, absl::OkStatus(), turn);
    }
    return;
  }
  Away away = AwayOf(members);
  if (away.moving) return;
  if (away.evicted.empty() && away.unready.empty() && !away.asked_back) {
    for (Session* member : members) Reopen(member, turn);
    return;
  }
  if (!any([](const Session* m) { return !m->restores.empty(); })) return;
  // What could not even begin is answered to all of them.
  bool began = true;
  for (const auto& [lease, user] : away.unready)
    began &= MakeReady(lease, user, turn);
  if (began && !away.evicted.empty())
    AskForRestore(members, std::move(away.evicted), turn);
}

Machine::Away Machine::AwayOf(const std::vector<Session*>& members) const {
  Away away;
  for (Session* member : members) {
    for (const quota::LeaseId id : member->leases) {
      Lease* lease = &state_.LeaseAt(id);
      const Mapping& mapping = *lease->MappingOf(member->id);
      away.moving |= lease->residence == Residence::kEvicting ||
                     lease->residence == Residence::kRestoring ||
                     mapping.asked ||
                     // Others are paused so that it can be taken.
                     (lease->awaits_pause && mapping.unmapped);
      if (lease->residence == Residence::kEvicted) {
        if (IsAskedBack(state_, *lease)) {
          away.asked_back = true;
        } else {
          away.evicted.push_back(id);
        }
      } else if (mapping.unmapped || lease->torn) {
        away.unready.emplace_back(lease, member);
      }
    }
  }
  return away;
}

// In whose name the engine is asked: the member that waits the longest. It
// denies a session that is being paused at once, and one whose wait is over:
// while one is paused, such a one is not asked for. Null: nobody.
Session* Machine::AskerOf(const std::vector<Session*>& members,
                          quota::Instant now) const {
  Session* asking = nullptr;
  quota::Instant deadline;
  bool paused = false;
  for (Session* member : members) {
    if (state_.pausing.contains(member->id)) {
      paused = true;
      continue;
    }
    for (const auto& [id, until] : member->restores) {
      if (asking != nullptr && until <= deadline) continue;
      asking = member;
      deadline = until;
    }
  }
  return paused && asking != nullptr && deadline <= now ? nullptr : asking;
}

void Machine::AskForRestore(const std::vector<Session*>& members,
                            std::vector<quota::LeaseId> evicted, Turn& turn) {
  Session* const asking = AskerOf(members, turn.now());
  if (asking == nullptr) return;
  quota::Instant deadline;
  for (const auto& [id, until] : asking->restores)
    deadline = std::max(deadline, until);
  for (Session* member : members) ++member->restore_attempts;
  const quota::RequestId request{state_.next_request++};
  asking->restoring = request;
  state_.restoring.emplace(request, Returning{asking->id, std::nullopt});
  for (const quota::LeaseId id : evicted) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->shared) state_.asked_back.Set(*lease, request);
  }
  Tell(quota::Restore{request, quota::SessionId{asking->id}, std::move(evicted),
                      deadline},
       turn);
}

void Machine::Reopen(Session* session, Turn& turn) {
  if (!session->gate->Reopen()) {
    return AnswerRestores(
        session,
        proto::MakeError(v1::BAD_STATE,
                         "the gate's word was written over while it was "
                         "closed: this process breaks the gate's rules"),
        turn);
  }
  AnswerRestores(session, absl::OkStatus(), turn);
}

void Machine::AnswerRestores(Session* session, const absl::Status& status,
                             Turn& turn) {
  std::map<uint64_t, quota::Instant> waiting;
  waiting.swap(session->restores);
  session->restore_attempts = 0;
  state_.waking.erase(session->id);
  for (const auto& [client_id, until] : waiting)
    state_.restore_times.erase({until, session->id, client_id});
  for (const auto& [client_id, until] : waiting) {
    if (!status.ok()) {
      Refuse(session, client_id, status, turn);
      continue;
    }
    v1::BrokerMessage answer;
    answer.set_request_id(client_id);
    answer.mutable_restored();
    Answer(session, std::move(answer), turn);
  }
}

void Machine::AnswerMembers(Session* session, const absl::Status& status,
                            Turn& turn) {
  for (Session* member : state_.groups.Members(session))
    AnswerRestores(member, status, turn);
}

void Machine::OnRestored(const quota::Restored& restored, Turn& turn) {
  auto it = state_.restoring.find(restored.request);
  if (it == state_.restoring.end()) return BringBack(restored.leases, turn);
  const Returning returning = it->second;
  state_.restoring.erase(it);
  if (returning.for_attach.has_value())
    return OnBackForAttach(*returning.for_attach, turn);
  Session* session = &state_.SessionAt(returning.session);
  session->restoring.reset();
  std::vector<quota::LeaseId> back =
      AwayOf(state_.groups.Members(session)).evicted;
  // What was asked for and has been left meanwhile: it is charged, so it comes.
  back.insert(back.end(), restored.leases.begin(), restored.leases.end());
  BringBack(back, turn);
  // It may have left the only one that it waited for.
  AdvanceRestore(session, turn);
}

// Those of them that are charged to the device. Also for a session that has
// left, or has withdrawn its Restore, since the engine decided: the leases come
// back all the same, for others or to be released.
void Machine::BringBack(const std::vector<quota::LeaseId>& leases, Turn& turn) {
  for (const quota::LeaseId id : leases) {
    const auto lease = state_.leases.find(id);
    // A group's members may share one.
    if (lease != state_.leases.end() &&
        lease->second->residence == Residence::kEvicted &&
        !state_.engine.Lease(id)->evicted) {
      StartRestore(lease->second.get(), turn);
    }
  }
}

// Denied: of the engine's request; each of the client's has its own deadline.
// Its own are answered before others ask for the same leases: a denial that is
// told at once would go round between them for ever.
void Machine::OnRestoreDenied(const quota::Denied& denied, Session* session,
                              Turn& turn) {
  session->restoring.reset();
  const bool in_time = denied.reason == quota::Reason::kPoolExhausted;
  const bool waits_on = denied.pausing || (in_time && WaitsOn(session, turn));
  if (!waits_on) {
    uint64_t bytes = 0;
    for (const quota::LeaseId id :
         AwayOf(state_.groups.Members(session)).evicted)
      bytes += state_.LeaseAt(id).bytes;
    v1::Event event = NewEvent("restore_failed", session->tenant);
    event.set_session_id(session->id);
    event.set_bytes(bytes);
    event.set_message(std::string(quota::ReasonName(denied.reason)));
    turn.Publish(std::move(event));
    AnswerMembers(session, DenialStatus(denied, bytes), turn);
  }
  AdvanceOthers(denied.request, session, turn);
  // What ends a pause comes back to it; so does its deadline.
  if (waits_on) AdvanceRestore(session, turn);
}

// Whether a Restore of the session, or of its group, has time left.
bool Machine::WaitsOn(Session* session, const Turn& turn) const {
  for (const Session* member : state_.groups.Members(session)) {
    for (const auto& [id, until] : member->restores) {
      if (until > turn.now()) return true;
    }
  }
  return false;
}

// Restores whose own deadline is over: their leases may still be on their way
// out, their pause may last, or another of the group waits longer.
void Machine::ExpireRestores(Turn& turn) {
  const quota::Instant now = turn.now();
  for (int i = 0; i < kMostAtOnce && !state_.restore_times.empty(); ++i) {
    const auto [until, id, client_id] = *state_.restore_times.begin();
    if (until > now) return;
    state_.restore_times.erase(state_.restore_times.begin());
    Session* session = &state_.SessionAt(id);
    session->restores.erase(client_id);
    Refuse(session, client_id,
           proto::MakeError(v1::POOL_EXHAUSTED,
                            "the session's memory was not back in time: wait "
                            "longer",
                            {.retry_after = absl::Milliseconds(100)}),
           turn);
    if (session->restores.empty()) state_.waking.erase(id);
  }
}

}  // namespace gmb::broker
