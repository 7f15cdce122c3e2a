// Clients' messages, each to who answers it.
#include <utility>

#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "proto/error_status.h"

namespace gmb::broker {

void Machine::HandleMessage(uint64_t session_id,
                            const v1::ClientMessage& message, Turn& turn) {
  Session* session = state_.sessions->Find(session_id);
  if (session == nullptr || session->talk->ended ||
      HandleNotice(session, message, turn)) {
    return;
  }
  const uint64_t id = message.request_id();
  if (session->tenant.has_value()) turn.SetAsker(*session->tenant);
  if (!sessions_.AnswerAgain(session, id, turn))
    HandleRequest(session, id, message, turn);
}

// Messages without an answer; false when it is none of them.
bool Machine::HandleNotice(Session* session, const v1::ClientMessage& message,
                           Turn& turn) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kMapped:
      if (message.mapped().move() != 0) {
        mover_.OnMapped(session, message.mapped(), turn);
      } else {
        leases_.MarkMapped(session, message.mapped());
      }
      return true;
    case v1::ClientMessage::kCancel:
      requests_.Cancel(session, message.cancel().acquire_request_id(), turn);
      return true;
    case v1::ClientMessage::kUnmapped:
      mover_.OnUnmapped(session, message.unmapped(), turn);
      return true;
    case v1::ClientMessage::kSetTrimmable:
      reclaimer_.SetTrimmable(session, message.set_trimmable());
      return true;
    case v1::ClientMessage::kTrimmed:
      reclaimer_.OnTrimmed(session, message.trimmed(), turn);
      return true;
    default:
      return false;
  }
}

void Machine::HandleRequest(Session* session, uint64_t id,
                            const v1::ClientMessage& message, Turn& turn) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kAcquire:
      return requests_.Acquire(session, id, message.acquire(), turn);
    case v1::ClientMessage::kRelease:
      return Release(session, id, message.release(), turn);
    case v1::ClientMessage::kGetQuota:
      return sessions_.ReportQuota(session, id, turn);
    case v1::ClientMessage::kSetGate:
      return gatekeeper_.SetGate(session, id, message.set_gate(), turn);
    case v1::ClientMessage::kRestore:
      return waker_.Restore(session, id, message.restore(), turn);
    case v1::ClientMessage::kSeal:
      return sharing_.Seal(session, id, message.seal().lease_id(), turn);
    case v1::ClientMessage::kAttach:
      return sharing_.Attach(session, id, message.attach(), turn);
    case v1::ClientMessage::kExportLease:
      return sharing_.Export(session, id, message.export_lease(), turn);
    case v1::ClientMessage::kDrop:
      return sharing_.Drop(session, id, message.drop().name(), turn);
    default:
      return sessions_.Refuse(
          session, id,
          proto::MakeError(v1::BAD_REQUEST,
                           "the message asks for nothing this broker knows",
                           {.field = "kind"}),
          turn);
  }
}

void Machine::Release(Session* session, uint64_t client_id,
                      const v1::Release& release, Turn& turn) {
  Lease* lease = FindLease(state_, *session, release.lease_id());
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_released()->set_lease_id(release.lease_id());
  // Released with the broker before this one, whose answer was lost.
  if (lease == nullptr && release.lease_id() != 0 &&
      release.lease_id() <= session->talk->leases_before)
    return sessions_.Answer(session, std::move(answer), turn);
  // A lease that was not announced yet does not exist for the client.
  if (lease == nullptr || lease->life->state == v1::LeaseInfo::CREATING) {
    return sessions_.Refuse(session, client_id, NoSuchLease(release.lease_id()),
                            turn);
  }
  reclaimer_.CountTrimmed(session, *lease);
  sessions_.Answer(session, std::move(answer), turn);
  sharing_.Leave(session, lease, /*reuse=*/true, turn);
  // Other users may have waited for the end of this one's use of it, or of the
  // pause that ends with it.
  turn.Queue(LeaseLeft{session->id, quota::LeaseId{release.lease_id()}});
}

}  // namespace gmb::broker
