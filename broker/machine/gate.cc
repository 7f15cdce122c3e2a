// Sessions' gates: what may be taken by force, and what may not.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/gatekeeper.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "proto/error_status.h"

namespace gmb::broker {

bool Gatekeeper::SetGate(Session* session, uint64_t client_id,
                         const v1::SetGate& message, Turn& turn) {
  gates_.SayNeverLends(session, message.never_lends());
  const bool was_on = session->gate != nullptr && session->gate->on();
  if (absl::Status done = message.on()
                              ? TurnGateOn(session, message.group(), turn)
                              : TurnGateOff(session, message.group(), turn);
      !done.ok()) {
    sessions_.Refuse(session, client_id, done, turn);
    return false;
  }
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_gate_set();
  sessions_.Answer(session, std::move(answer), turn);
  return message.on() && !was_on;
}

absl::Status Gatekeeper::TurnGateOn(Session* session, const std::string& group,
                                    Turn& turn) {
  if (session->gate == nullptr) {
    return proto::MakeError(v1::BAD_STATE, "this session has no gate");
  }
  if (absl::Status joined = gates_.JoinGroup(session, group); !joined.ok())
    return joined;
  if (session->gate->on()) return absl::OkStatus();
  gates_.SetOn(session, true);
  index_.TouchLeasesOf(*session);
  v1::Event event = NewEvent(state_, "gate_on", session->tenant);
  event.set_session_id(session->id);
  if (!group.empty()) event.set_message(absl::StrCat("group ", group));
  turn.Publish(std::move(event));
  SoftenAll(MembersOf(state_, session), turn);
  return absl::OkStatus();
}

// Of sessions whose group may be on now. Others may be served by that, and the
// sessions' leases become more.
void Gatekeeper::SoftenAll(const std::vector<Session*>& sessions, Turn& turn) {
  for (const Session* session : sessions) {
    if (!GroupIsOn(state_, *session)) continue;
    const std::vector<quota::LeaseId> leases(session->leases->begin(),
                                             session->leases->end());
    for (const quota::LeaseId id : leases) {
      const Lease& lease = state_.LeaseAt(id);
      const std::vector<Mapping>& mappings = lease.move->mappings;
      const bool refused =
          std::any_of(mappings.begin(), mappings.end(),
                      [](const Mapping& one) { return one.refuses(); });
      if (state_.engine->Lease(id)->hard && !refused) host_.Soften(lease, turn);
    }
  }
}

// All or nothing: guarantees of others may rest on what is soft.
absl::Status Gatekeeper::HardenAll(const Session& session,
                                   std::vector<quota::LeaseId>* hardened,
                                   Turn& turn) {
  const std::vector<quota::LeaseId> leases(session.leases->begin(),
                                           session.leases->end());
  for (const quota::LeaseId id : leases) {
    const quota::LeaseView lease = *state_.engine->Lease(id);
    if (lease.hard) continue;
    if (const auto refusal =
            quota_.TryToTell(quota::HardChanged{id, true}, turn)) {
      for (const quota::LeaseId undo : *hardened) {
        quota_.Tell(quota::HardChanged{undo, false}, turn);
      }
      return RefusalStatus(*refusal, state_.PoolAt(lease.pool).uuid());
    }
    hardened->push_back(id);
  }
  return absl::OkStatus();
}

void Gatekeeper::LeaveGroup(Session* session, Turn& turn) {
  if (session->group->empty()) return;
  std::vector<Session*> members = MembersOf(state_, session);
  waker_.CancelFor(members, turn);
  gates_.LeaveGroup(session);
  // It may have been the only one of them that was not parked, or not on.
  index_.MarkChangedEverywhere(*session->tenant);
  std::erase(members, session);
  SoftenAll(members, turn);
}

// A member that is off keeps the whole group from being lent: what the sums
// allow becomes hard, so that nobody counts on it.
void Gatekeeper::HoldGroup(Session* session, Turn& turn) {
  index_.MarkChangedEverywhere(*session->tenant);
  for (Session* member : MembersOf(state_, session)) {
    if (!member->gate->on() || member->gate->closed()) continue;
    std::vector<quota::LeaseId> hardened;
    if (!HardenAll(*member, &hardened, turn).ok()) continue;
    for (const quota::LeaseId id : hardened)
      host_.GiveUpRoom(&state_.LeaseAt(id));
  }
}

absl::Status Gatekeeper::TurnGateOff(Session* session, const std::string& group,
                                     Turn& turn) {
  if (session->gate == nullptr && !group.empty())
    return proto::MakeError(v1::BAD_STATE, "this session has no gate");
  if (session->gate == nullptr) return absl::OkStatus();
  if (!session->gate->on()) {
    if (group.empty()) {
      LeaveGroup(session, turn);
      return absl::OkStatus();
    }
    if (absl::Status joined = gates_.JoinGroup(session, group); !joined.ok())
      return joined;
    HoldGroup(session, turn);
    return absl::OkStatus();
  }
  if (session->gate->closed()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session's memory may be away: turn its gate "
                            "off while a scope is in");
  }
  if (absl::Status joined = gates_.JoinGroup(session, group); !joined.ok())
    return joined;
  const std::vector<quota::LeaseId> leases(session->leases->begin(),
                                           session->leases->end());
  std::vector<quota::LeaseId> hardened;
  if (absl::Status hard = HardenAll(*session, &hardened, turn); !hard.ok())
    return hard;
  gates_.SetOn(session, false);
  lookout_.Forget(*session);
  index_.TouchLeasesOf(*session);
  const std::vector<Session*> members = MembersOf(state_, session);
  if (group.empty()) {
    LeaveGroup(session, turn);
  } else {
    HoldGroup(session, turn);
  }
  if (state_.pausing->contains(session->id)) {
    gates_.Withdraw(session);
    EndPause({session}, turn);
  }
  ForgetPausesOf(members, turn);
  for (Session* member : members) waker_.AdvanceRestore(member, turn);
  for (const quota::LeaseId id : hardened)
    host_.GiveUpRoom(&state_.LeaseAt(id));
  // The pause may have held back others who use the same leases.
  waker_.AdvanceUsersOf(leases, turn);
  v1::Event event = NewEvent(state_, "gate_off", session->tenant);
  event.set_session_id(session->id);
  turn.Publish(std::move(event));
  return absl::OkStatus();
}

}  // namespace gmb::broker
