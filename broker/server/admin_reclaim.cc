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
  if (!v1::ReclaimRequest::Step_IsValid(request.to())) {
    return reactor->Finish(proto::ToGrpcStatus(proto::MakeError(
        v1::BAD_REQUEST, "the last step is TRIM or EVICT", {.field = "to"})));
  }
  absl::Status checked = core_->GetPolicy(request.tenant()).status();
  checked.Update(core_->ResolveDevice(request.device()).status());
  if (!checked.ok()) return reactor->Finish(proto::ToGrpcStatus(checked));
  AuditRecord audit;
  audit.at = clock_->WallTime();
  audit.operator_name = call->caller.name;
  audit.action = "reclaim";
  audit.subject = request.tenant();
  audit.detail = request.ShortDebugString();
  if (absl::Status stored = store_->Audit(audit); !stored.ok()) {
    return reactor->Finish(proto::ToGrpcStatus(stored));
  }
  core_->StartReclaim(request, [reactor, response, call](
                                   absl::StatusOr<v1::ReclaimResponse> done) {
    const absl::Status status = done.status();
    if (status.ok()) *response = *std::move(done);
    reactor->Finish(proto::ToGrpcStatus(status));
  });
}

}  // namespace gmb::broker
