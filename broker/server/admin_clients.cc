// Operators hang clients up, drop what they share, and take memory back.
#include "broker/server/admin_clients.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {

absl::Status AdminClients::CloseSession(AuditRecord audit,
                                        const v1::CloseSessionRequest& request,
                                        v1::CloseSessionResponse* response) {
  GMB_ASSIGN_OR_RETURN(v1::SessionInfo session,
                       core_->SessionReport(request.id()));
  audit.action = "close_session";
  audit.subject = session.tenant();
  audit.detail =
      absl::StrCat("session ", session.id(), ": uid ", session.uid(), ", pid ",
                   session.pid(), " (", session.program(), ")");
  // An operator in trouble has to be able to do this also while the disk is full
  // or broken.
  GMB_RETURN_IF_ERROR(store_->Audit(
      audit,
      [&] {
        core_->CloseSession(request.id(), "an operator closed it");
        return absl::OkStatus();
      },
      QuotaStore::OnBadDisk::kActAnyway));
  *response->mutable_session() = std::move(session);
  return absl::OkStatus();
}

absl::Status AdminClients::DropLease(AuditRecord audit,
                                     const v1::DropLeaseRequest& request,
                                     v1::DropLeaseResponse* response) {
  audit.action = "drop_lease";
  audit.subject = request.tenant();
  audit.detail = request.name();
  return store_->Audit(audit, [&] {
    const absl::StatusOr<uint32_t> attached =
        core_->DropLease(request.tenant(), request.name());
    if (attached.ok()) response->set_attached(*attached);
    return attached.status();
  });
}

void AdminClients::Reclaim(const Caller& caller,
                           const v1::ReclaimRequest& request,
                           v1::ReclaimResponse* response,
                           const AdminCalls::Finish& finish) {
  AuditRecord audit = calls_->RecordOf(caller);
  audit.action = "reclaim";
  audit.subject = request.tenant();
  audit.detail = request.ShortDebugString();
  auto answer = [response, finish](absl::StatusOr<v1::ReclaimResponse> done) {
    const absl::Status status = done.status();
    if (status.ok()) *response = *std::move(done);
    finish(status);
  };
  const absl::Status started = store_->Audit(
      audit,
      [&] {
        // From here on the answer may end the call, and the request with it.
        return core_->StartReclaim(request, std::move(answer));
      },
      QuotaStore::OnBadDisk::kActAnyway);
  if (!started.ok()) finish(started);
}

}  // namespace gmb::broker
