// Sessions' gates: what may be taken by force, and what may not.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/backed.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "proto/error_status.h"

namespace gmb::broker {

bool Machine::CanBeTaken(const Session& session, const Pool& pool,
                         v1::Contents contents) {
  return session.gate != nullptr && session.gate->on() &&
         pool.CanMove(contents);
}

bool Machine::ReserveRoom(const Lease& lease) {
  return lease.request.contents != v1::PRESERVE ||
         state_.host_books.Reserve(lease.tenant, lease.id, lease.bytes)
                 .outcome == HostBooks::Outcome::kReserved;
}

// Of a tenant that owes no answer: what it is given must be there to be taken.
bool Machine::HasSoftCredit(quota::TenantId tenant) const {
  return state_.owed.OfTenant(tenant) == 0;
}

// A request that was judged as a hard one: whether it could be served, some
// time, as a soft one.
bool Machine::WouldFitSoft(const PendingAcquire& request) const {
  const Session& session = state_.SessionAt(request.session);
  const Pool& pool = state_.PoolAt(request.pool);
  if (session.gate == nullptr || !pool.CanMove(request.contents)) return false;
  if (request.contents == v1::PRESERVE &&
      !state_.host_books.HasRoomFor(*session.tenant, request.bytes)) {
    return false;
  }
  const quota::PoolView view = *state_.engine.Pool(pool.id);
  const quota::TenantPoolView held =
      *state_.engine.TenantPool(*session.tenant, pool.id);
  return std::min(held.hard_bytes + request.bytes, held.limit_bytes) +
             view.missing_bytes <=
         view.target_bytes;
}

// From all who have it.
void Machine::Soften(Lease* lease, Turn& turn) {
  const Pool& pool = state_.PoolAt(lease->request.pool);
  if (!pool.CanMove(lease->request.contents) || lease->overdue() ||
      !HasSoftCredit(lease->tenant))
    return;
  for (const Mapping& mapping : lease->mappings) {
    const Session& session = state_.SessionAt(mapping.session);
    if (!CanBeTaken(session, pool, lease->request.contents)) return;
  }
  if (ReserveRoom(*lease)) Tell(quota::HardChanged{lease->id, false}, turn);
}

// Of a lease that is hard now. What is being copied keeps it until then.
void Machine::GiveUpRoom(Lease* lease) {
  if (lease->copies > 0 || lease->residence != Residence::kResident) return;
  state_.host_books.Release(lease->id);
  lease->backed_slabs = 0;
}

void Machine::SetGate(Session* session, uint64_t client_id,
                      const v1::SetGate& message, Turn& turn) {
  if (absl::Status done = message.on()
                              ? TurnGateOn(session, message.group(), turn)
                              : TurnGateOff(session, turn);
      !done.ok()) {
    return Refuse(session, client_id, done, turn);
  }
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_gate_set();
  Answer(session, std::move(answer), turn);
}

absl::Status Machine::TurnGateOn(Session* session, const std::string& group,
                                 Turn& turn) {
  if (session->gate == nullptr) {
    return proto::MakeError(v1::BAD_STATE, "this session has no gate");
  }
  if (absl::Status joined = state_.groups.Join(session, group); !joined.ok())
    return joined;
  if (session->gate->on()) return absl::OkStatus();
  session->gate->SetOn(true);
  TouchLeases(*session);
  v1::Event event = NewEvent("gate_on", session->tenant);
  event.set_session_id(session->id);
  if (!group.empty()) event.set_message(absl::StrCat("group ", group));
  turn.Publish(std::move(event));
  // Others may be served by that, and the session's leases become more.
  const std::vector<quota::LeaseId> leases(session->leases.begin(),
                                           session->leases.end());
  for (const quota::LeaseId id : leases) Soften(&state_.LeaseAt(id), turn);
  return absl::OkStatus();
}

// What waits for leases of all members is asked for anew, by AdvanceRestore.
void Machine::LeaveGroup(Session* session, Turn& turn) {
  if (session->group.empty()) return;
  std::vector<quota::RequestId> cancelled;
  for (Session* member : state_.groups.Members(session)) {
    const auto asked = std::exchange(member->restoring, std::nullopt);
    if (!asked.has_value()) continue;
    state_.restoring.erase(*asked);
    cancelled.push_back(*asked);
    Tell(quota::Cancel{*asked}, turn);
  }
  for (const quota::RequestId asked : cancelled)
    AdvanceOthers(asked, session, turn);
  state_.groups.Leave(session);
}

absl::Status Machine::TurnGateOff(Session* session, Turn& turn) {
  if (session->gate == nullptr || !session->gate->on()) return absl::OkStatus();
  if (session->gate->closed()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session's memory may be away: turn its gate "
                            "off while a scope is in");
  }
  // All or nothing: guarantees of others may rest on what is soft.
  std::vector<quota::LeaseId> hardened;
  const std::vector<quota::LeaseId> leases(session->leases.begin(),
                                           session->leases.end());
  for (const quota::LeaseId id : leases) {
    const quota::LeaseView lease = *state_.engine.Lease(id);
    if (lease.hard) continue;
    if (const auto refusal = TryToTell(quota::HardChanged{id, true}, turn)) {
      for (const quota::LeaseId undo : hardened) {
        Tell(quota::HardChanged{undo, false}, turn);
      }
      return RefusalStatus(*refusal, state_.PoolAt(lease.pool).uuid());
    }
    hardened.push_back(id);
  }
  session->gate->SetOn(false);
  state_.gate_watch.Remove(session->id);
  TouchLeases(*session);
  const std::vector<Session*> members = state_.groups.Members(session);
  LeaveGroup(session, turn);
  if (state_.pausing.contains(session->id)) {
    session->gate->Withdraw();
    EndPause({session}, turn);
  }
  ForgetPausesOf(members, turn);
  for (Session* member : members) AdvanceRestore(member, turn);
  for (const quota::LeaseId id : hardened) GiveUpRoom(&state_.LeaseAt(id));
  // The pause may have held back others who use the same leases.
  AdvanceUsersOf(leases, turn);
  v1::Event event = NewEvent("gate_off", session->tenant);
  event.set_session_id(session->id);
  turn.Publish(std::move(event));
  return absl::OkStatus();
}

void Machine::Seal(Session* session, uint64_t client_id, uint64_t lease_id,
                   Turn& turn) {
  Lease* lease = FindLease(*session, lease_id);
  if (lease == nullptr || lease->state == v1::LeaseInfo::CREATING) {
    return Refuse(session, client_id, NoSuchLease(lease_id), turn);
  }
  if (lease->shared && lease->request.session != session->id) {
    return Refuse(
        session, client_id,
        proto::MakeError(v1::BAD_STATE, "it was sealed by who shares it"),
        turn);
  }
  if (lease->request.contents != v1::PRESERVE) {
    return Refuse(session, client_id,
                  proto::MakeError(
                      v1::BAD_STATE,
                      "only a lease whose contents are PRESERVE can be sealed"),
                  turn);
  }
  // What was copied before its last writes does not become true by sealing.
  if (!lease->sealed && lease->residence == Residence::kResident &&
      !IsBacked(state_, *lease)) {
    if (BackedSlabs(state_, *lease) == 0) lease->backed_slabs = 0;
    if (lease->copies > 0 && !session->gate->UnusedSince(lease->backed_epoch))
      lease->moved.Update(absl::CancelledError("it was written meanwhile"));
    state_.host_books.MarkUntrue(lease->id);
  }
  lease->sealed = true;
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_sealed()->set_lease_id(lease_id);
  Answer(session, std::move(answer), turn);
  if (!lease->request.share_as.empty()) Share(lease, turn);
}

}  // namespace gmb::broker
