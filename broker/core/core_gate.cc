// Sessions' gates: what may be taken by force, and what may not.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "proto/error_status.h"

namespace gmb::broker {

bool Core::CanBeTaken(const Session& session, const Pool& pool,
                      v1::Contents contents) {
  return session.gate != nullptr && session.gate->on() &&
         pool.CanMove(contents);
}

bool Core::ReserveRoom(const Lease& lease) {
  return lease.request.contents != v1::PRESERVE ||
         host_books_.Reserve(lease.tenant, lease.id, lease.bytes).outcome ==
             HostBooks::Outcome::kReserved;
}

// A request of a session whose gate is off: whether it could be served, some
// time, were it on.
bool Core::WouldFitWithGate(const PendingAcquire& request) const {
  const Session& session = *sessions_.at(request.session);
  const Pool& pool = *pools_.at(request.pool);
  if (session.gate == nullptr || session.gate->on() ||
      !pool.CanMove(request.contents)) {
    return false;
  }
  if (request.contents == v1::PRESERVE &&
      !host_books_.HasRoomFor(*session.tenant, request.bytes)) {
    return false;
  }
  const quota::PoolView view = *engine_.Pool(pool.id);
  const quota::TenantPoolView held =
      *engine_.TenantPool(*session.tenant, pool.id);
  return std::min(held.hard_bytes + request.bytes, held.limit_bytes) +
             view.missing_bytes <=
         view.target_bytes;
}

// From all who have it.
void Core::Soften(Lease* lease, Afterwards* after) {
  const Pool& pool = *pools_.at(lease->request.pool);
  if (!pool.CanMove(lease->request.contents) || lease->overdue()) return;
  for (const Mapping& mapping : lease->mappings) {
    const Session& session = *sessions_.at(mapping.session);
    if (!CanBeTaken(session, pool, lease->request.contents)) return;
  }
  if (ReserveRoom(*lease)) Tell(quota::HardChanged{lease->id, false}, after);
}

// Of a lease that is hard now. What is being copied keeps it until then.
void Core::GiveUpRoom(Lease* lease) {
  if (lease->copies > 0 || lease->residence != Residence::kResident) return;
  host_books_.Release(lease->id);
  lease->backed_slabs = 0;
}

void Core::SetGate(Session* session, uint64_t client_id,
                   const v1::SetGate& message, Afterwards* after) {
  if (absl::Status done = message.on()
                              ? TurnGateOn(session, message.group(), after)
                              : TurnGateOff(session, after);
      !done.ok()) {
    return Refuse(session, client_id, done, after);
  }
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_gate_set();
  Answer(session, std::move(answer), after);
}

absl::Status Core::TurnGateOn(Session* session, const std::string& group,
                              Afterwards* after) {
  if (session->gate == nullptr) {
    return proto::MakeError(v1::BAD_STATE, "this session has no gate");
  }
  if (absl::Status joined = groups_.Join(session, group); !joined.ok())
    return joined;
  if (session->gate->on()) return absl::OkStatus();
  session->gate->SetOn(true);
  v1::Event event = NewEvent("gate_on", session->tenant);
  event.set_session_id(session->id);
  if (!group.empty()) event.set_message(absl::StrCat("group ", group));
  deps_.events->Publish(std::move(event));
  // Others may be served by that, and the session's leases become more.
  const std::vector<quota::LeaseId> leases(session->leases.begin(),
                                           session->leases.end());
  for (const quota::LeaseId id : leases) Soften(leases_.at(id).get(), after);
  return absl::OkStatus();
}

// What waits for leases of all members is asked for anew, by AdvanceRestore.
void Core::LeaveGroup(Session* session, Afterwards* after) {
  if (session->group.empty()) return;
  std::vector<quota::RequestId> cancelled;
  for (Session* member : groups_.Members(session)) {
    const auto asked = std::exchange(member->restoring, std::nullopt);
    if (!asked.has_value()) continue;
    restoring_.erase(*asked);
    cancelled.push_back(*asked);
    Tell(quota::Cancel{*asked}, after);
  }
  for (const quota::RequestId asked : cancelled)
    AdvanceOthers(asked, session, after);
  groups_.Leave(session);
}

absl::Status Core::TurnGateOff(Session* session, Afterwards* after) {
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
    const quota::LeaseView lease = *engine_.Lease(id);
    if (lease.hard) continue;
    const quota::HardChanged change{id, true};
    if (const auto refusal = engine_.Check(change)) {
      for (const quota::LeaseId undo : hardened) {
        Tell(quota::HardChanged{undo, false}, after);
      }
      return RefusalStatus(*refusal, pools_.at(lease.pool)->uuid());
    }
    Tell(change, after);
    hardened.push_back(id);
  }
  session->gate->SetOn(false);
  const std::vector<Session*> members = groups_.Members(session);
  LeaveGroup(session, after);
  if (pausing_.contains(session->id)) {
    session->gate->Withdraw();
    EndPause({session}, after);
  }
  for (Session* member : members) AdvanceRestore(member, after);
  for (const quota::LeaseId id : hardened) GiveUpRoom(leases_.at(id).get());
  // The pause may have held back others who use the same leases.
  AdvanceUsersOf(leases, after);
  v1::Event event = NewEvent("gate_off", session->tenant);
  event.set_session_id(session->id);
  deps_.events->Publish(std::move(event));
  return absl::OkStatus();
}

void Core::Seal(Session* session, uint64_t client_id, uint64_t lease_id,
                Afterwards* after) {
  Lease* lease = FindLease(*session, lease_id);
  if (lease == nullptr || lease->state == v1::LeaseInfo::CREATING) {
    return Refuse(session, client_id, NoSuchLease(lease_id), after);
  }
  if (lease->shared && lease->request.session != session->id) {
    return Refuse(
        session, client_id,
        proto::MakeError(v1::BAD_STATE, "it was sealed by who shares it"),
        after);
  }
  if (lease->request.contents != v1::PRESERVE) {
    return Refuse(session, client_id,
                  proto::MakeError(
                      v1::BAD_STATE,
                      "only a lease whose contents are PRESERVE can be sealed"),
                  after);
  }
  // What was copied before its last writes does not become true by sealing.
  if (!lease->sealed && lease->residence == Residence::kResident &&
      !IsBacked(*lease)) {
    if (BackedSlabs(*lease) == 0) lease->backed_slabs = 0;
    if (lease->copies > 0 && !session->gate->UnusedSince(lease->backed_epoch))
      lease->moved.Update(absl::CancelledError("it was written meanwhile"));
    host_books_.MarkUntrue(lease->id);
  }
  lease->sealed = true;
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_sealed()->set_lease_id(lease_id);
  Answer(session, std::move(answer), after);
  if (!lease->request.share_as.empty()) Share(lease, after);
}

// A sealed lease's copy is true for ever; another's, as long as no scope has
// come in since it was made.
bool Core::IsBacked(const Lease& lease) const {
  if (lease.request.contents != v1::PRESERVE ||
      host_books_.TrueCopy(lease.id) == nullptr) {
    return false;
  }
  if (lease.sealed || lease.residence == Residence::kEvicted) return true;
  const Session* session = sessions_.Find(lease.request.session);
  return session != nullptr && session->gate != nullptr &&
         session->gate->UnusedSince(lease.backed_epoch);
}

// Of a lease that is being backed: its first slabs, whose copies are true.
uint32_t Core::BackedSlabs(const Lease& lease) const {
  if (lease.backed_slabs == 0 || lease.sealed) return lease.backed_slabs;
  const Session* session = sessions_.Find(lease.request.session);
  const bool holds =
      session != nullptr && session->gate->UnusedSince(lease.backed_epoch);
  return holds ? lease.backed_slabs : 0;
}

uint64_t Core::BackedBytes(const Lease& lease) const {
  if (IsBacked(lease)) return lease.bytes;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < BackedSlabs(lease); ++i)
    bytes += lease.slabs[i].bytes;
  return bytes;
}

}  // namespace gmb::broker
