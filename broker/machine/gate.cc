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
                              : TurnGateOff(session, turn);
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
  // Others may be served by that, and the session's leases become more.
  const std::vector<quota::LeaseId> leases(session->leases->begin(),
                                           session->leases->end());
  for (const quota::LeaseId id : leases) host_.Soften(state_.LeaseAt(id), turn);
  return absl::OkStatus();
}

void Gatekeeper::LeaveGroup(Session* session, Turn& turn) {
  if (session->group->empty()) return;
  waker_.CancelFor(MembersOf(state_, session), turn);
  gates_.LeaveGroup(session);
  // It may have been the only one of them that was not parked.
  index_.MarkChangedEverywhere(*session->tenant);
}

absl::Status Gatekeeper::TurnGateOff(Session* session, Turn& turn) {
  if (session->gate == nullptr || !session->gate->on()) return absl::OkStatus();
  if (session->gate->closed()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session's memory may be away: turn its gate "
                            "off while a scope is in");
  }
  // All or nothing: guarantees of others may rest on what is soft.
  std::vector<quota::LeaseId> hardened;
  const std::vector<quota::LeaseId> leases(session->leases->begin(),
                                           session->leases->end());
  for (const quota::LeaseId id : leases) {
    const quota::LeaseView lease = *state_.engine->Lease(id);
    if (lease.hard) continue;
    if (const auto refusal =
            quota_.TryToTell(quota::HardChanged{id, true}, turn)) {
      for (const quota::LeaseId undo : hardened) {
        quota_.Tell(quota::HardChanged{undo, false}, turn);
      }
      return RefusalStatus(*refusal, state_.PoolAt(lease.pool).uuid());
    }
    hardened.push_back(id);
  }
  gates_.SetOn(session, false);
  lookout_.Forget(*session);
  index_.TouchLeasesOf(*session);
  const std::vector<Session*> members = MembersOf(state_, session);
  LeaveGroup(session, turn);
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
