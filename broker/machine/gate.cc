// Sessions' gates: what may be taken by force, and what may not.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/gatekeeper.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// A shared one is counted for each.
uint64_t LeasesOf(const std::vector<Session*>& sessions) {
  uint64_t leases = 0;
  for (const Session* session : sessions) leases += session->leases->size();
  return leases;
}

}  // namespace

void Gatekeeper::SetGate(Session* session, uint64_t client_id,
                         const v1::SetGate& message, Turn& turn) {
  gates_.SayNeverLends(session, message.never_lends());
  const uint64_t before = LeasesOf(MembersOf(state_, session));
  const absl::Status done = message.on()
                                ? TurnGateOn(session, message.group(), turn)
                                : TurnGateOff(session, message.group(), turn);
  turn.Spend(*session->tenant,
             std::max(before, LeasesOf(MembersOf(state_, session))));
  if (!done.ok()) return sessions_.Refuse(session, client_id, done, turn);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_gate_set()->set_group(*session->group);
  if (!session->group->empty()) {
    answer.mutable_gate_set()->set_group_members(
        static_cast<uint32_t>(MembersOf(state_, session).size()));
  }
  sessions_.Answer(session, std::move(answer), turn);
}

absl::Status Gatekeeper::TurnGateOn(Session* session, const std::string& group,
                                    Turn& turn) {
  if (session->gate == nullptr) {
    return proto::MakeError(v1::BAD_STATE, "this session has no gate");
  }
  const bool joins = session->group->empty() && !group.empty();
  if (absl::Status joined = gates_.JoinGroup(session, group); !joined.ok())
    return joined;
  if (session->gate->on()) {
    if (!joins) return absl::OkStatus();
    if (!GroupIsOn(state_, *session)) {
      if (absl::Status held = Hold({session}, session, turn); !held.ok())
        return held;
    }
    gates_.SpareAlike(*session);
    return absl::OkStatus();
  }
  if (joins) gates_.SpareAlike(*session);
  gates_.SetOn(session, true);
  index_.TouchLeasesOf(*session);
  // It may have been the only one that was off, and nothing of it be there.
  if (!session->group->empty()) index_.MarkChangedEverywhere(*session->tenant);
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
  LendsAgain lend;
  for (const Session* session : sessions) {
    if (!GroupIsOn(state_, *session)) continue;
    lend.sessions.push_back(session->id);
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
  if (!lend.sessions.empty()) turn.Queue(std::move(lend));
}

// All or nothing: guarantees of others may rest on what is soft.
absl::Status Gatekeeper::HardenAll(const std::vector<Session*>& sessions,
                                   Turn& turn) {
  std::vector<quota::LeaseId> leases;
  for (const Session* session : sessions)
    leases.insert(leases.end(), session->leases->begin(),
                  session->leases->end());
  std::vector<quota::LeaseId> hardened;
  for (const quota::LeaseId id : leases) {
    const quota::LeaseView lease = *state_.engine->Lease(id);
    if (lease.hard) continue;
    if (const auto refusal =
            quota_.TryToTell(quota::HardChanged{id, true}, turn)) {
      for (const quota::LeaseId undo : hardened) {
        quota_.Tell(quota::HardChanged{undo, false}, turn);
      }
      if (refusal->reason != quota::Reason::kOvercommitted)
        return RefusalStatus(*refusal, state_.PoolAt(lease.pool).uuid());
      return proto::MakeError(
          v1::OVERCOMMITTED,
          absl::StrCat("guarantees of others rest on what this session, or "
                       "another of its group, has borrowed: release memory, or "
                       "lower a guarantee, first: device=",
                       state_.PoolAt(lease.pool).uuid(),
                       " deficit_bytes=", refusal->deficit_bytes),
          {.deficit_bytes = refusal->deficit_bytes});
    }
    hardened.push_back(id);
  }
  for (const quota::LeaseId id : hardened)
    host_.GiveUpRoom(&state_.LeaseAt(id));
  return absl::OkStatus();
}

// A member that is off keeps the whole group from being lent. Nobody may count
// on what cannot be taken: that becomes hard, or nothing changes.
absl::Status Gatekeeper::Hold(const std::vector<Session*>& sessions,
                              Session* joined, Turn& turn) {
  absl::Status held;
  if (std::any_of(sessions.begin(), sessions.end(),
                  [](const Session* one) { return one->gate->closed(); })) {
    held = proto::MakeError(
        v1::BAD_STATE,
        "memory of this session, or of another of its group, may be away: try "
        "again when it is back");
  } else {
    held = HardenAll(sessions, turn);
  }
  if (!held.ok() && joined != nullptr) gates_.LeaveGroup(joined);
  if (held.ok()) index_.MarkChangedEverywhere(*sessions.front()->tenant);
  return held;
}

// Before the session is off; `stays`: in its group. Where another of the group
// is off already, the others' leases are hard.
std::vector<Session*> Gatekeeper::ToHold(Session* session, bool stays) const {
  std::vector<Session*> members = MembersOf(state_, session);
  const bool held = std::any_of(
      members.begin(), members.end(),
      [session](const Session* m) { return m != session && !m->gate->on(); });
  if (!stays || held) members = {session};
  std::erase_if(members, [](const Session* m) { return !m->gate->on(); });
  return members;
}

void Gatekeeper::LeaveGroup(Session* session, Turn& turn) {
  if (session->group->empty()) return;
  std::vector<Session*> members = MembersOf(state_, session);
  waker_.CancelFor(members, turn);
  gates_.LeaveGroup(session);
  // It may have been the only one of them that was not parked, or not on.
  index_.MarkChangedEverywhere(*session->tenant);
  if (session->gate->on()) return;
  std::erase(members, session);
  SoftenAll(members, turn);
}

absl::Status Gatekeeper::TurnGateOff(Session* session, const std::string& group,
                                     Turn& turn) {
  if (session->gate == nullptr) {
    return group.empty()
               ? absl::OkStatus()
               : proto::MakeError(v1::BAD_STATE, "this session has no gate");
  }
  const bool was_on = session->gate->on();
  if (was_on && session->gate->closed()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session's memory may be away: turn its gate "
                            "off while a scope is in");
  }
  const bool joins = session->group->empty() && !group.empty();
  if (absl::Status joined = gates_.JoinGroup(session, group); !joined.ok())
    return joined;
  if (was_on || joins) {
    const std::vector<Session*> holds = ToHold(session, !group.empty());
    if (absl::Status held = holds.empty()
                                ? absl::OkStatus()
                                : Hold(holds, joins ? session : nullptr, turn);
        !held.ok()) {
      return held;
    }
  }
  if (joins) gates_.SpareAlike(*session);
  const std::vector<Session*> members = MembersOf(state_, session);
  if (group.empty()) LeaveGroup(session, turn);
  if (was_on) {
    EndUseOfGate(session, members, turn);
  } else if (group.empty()) {
    waker_.AdvanceRestores(IdsOf(members), turn);
  }
  return absl::OkStatus();
}

// `members`: of the group that it was in, or still is.
void Gatekeeper::EndUseOfGate(Session* session,
                              const std::vector<Session*>& members,
                              Turn& turn) {
  const std::vector<quota::LeaseId> leases(session->leases->begin(),
                                           session->leases->end());
  gates_.SetOn(session, false);
  lookout_.Forget(*session);
  index_.TouchLeasesOf(*session);
  if (state_.pausing->contains(session->id)) {
    gates_.Withdraw(session);
    EndPause({session}, turn);
  }
  ForgetPausesOf(members, turn);
  waker_.AdvanceRestores(IdsOf(members), turn);
  // The pause may have held back others who use the same leases.
  waker_.AdvanceUsersOf(leases, turn);
  v1::Event event = NewEvent(state_, "gate_off", session->tenant);
  event.set_session_id(session->id);
  turn.Publish(std::move(event));
}

}  // namespace gmb::broker
