// The one operator's call that takes its time: memory has to come back first.
#include <utility>

#include "broker/server/admin_service.h"
#include "proto/error_status.h"

namespace gmb::broker {

grpc::ServerUnaryReactor* AdminService::Reclaim(
    grpc::CallbackServerContext* context, const v1::ReclaimRequest* request,
    v1::ReclaimResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
    return reactor;
  }
  operators_.Post(
      [this, reactor, request, response, held = Hold(*std::move(call))] {
        DoReclaim(held, *request, response, reactor);
      });
  return reactor;
}

void AdminService::DoReclaim(const HeldCall& call,
                             const v1::ReclaimRequest& request,
                             v1::ReclaimResponse* response,
                             grpc::ServerUnaryReactor* reactor) {
  AuditRecord audit = RecordOf(call->caller);
  audit.action = "reclaim";
  audit.subject = request.tenant();
  audit.detail = request.ShortDebugString();
  auto answer = [reactor, response,
                 call](absl::StatusOr<v1::ReclaimResponse> done) {
    const absl::Status status = done.status();
    if (status.ok()) *response = *std::move(done);
    reactor->Finish(proto::ToGrpcStatus(status));
  };
  const absl::Status started = store_->Audit(
      audit,
      [&] {
        // From here on the answer may end the call, and the request with it.
        return core_->StartReclaim(request, std::move(answer));
      },
      QuotaStore::OnBadDisk::kActAnyway);
  if (!started.ok()) reactor->Finish(proto::ToGrpcStatus(started));
}

}  // namespace gmb::broker
