// Operators hang clients up.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/server/admin_service.h"

namespace gmb::broker {

absl::Status AdminService::DoCloseSession(
    AuditRecord audit, const v1::CloseSessionRequest& request,
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

grpc::ServerUnaryReactor* AdminService::CloseSession(
    grpc::CallbackServerContext* context,
    const v1::CloseSessionRequest* request,
    v1::CloseSessionResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    return DoCloseSession(audit, *request, response);
  });
}

}  // namespace gmb::broker
