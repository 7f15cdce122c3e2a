// Calls on a tenant's socket that are not for tenants.
#include "broker/server/refused_calls.h"

#include <string>

#include "absl/strings/match.h"
#include "broker/server/admin_calls.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

class RefusedCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* RefusedCalls::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (!absl::StartsWith(context->method(), "/gmb.v1.Admin/")) {
    return new RefusedCall(grpc::Status(
        grpc::StatusCode::UNIMPLEMENTED,
        "tenants' sockets serve gmb.v1.SessionService alone: health and "
        "reflection are on admin/gmb.sock"));
  }
  const auto call = calls_->Authenticate(*context);
  return new RefusedCall(
      proto::ToGrpcStatus(call.ok() ? NotOperator() : call.status()));
}

}  // namespace gmb::broker
