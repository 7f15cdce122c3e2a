// The callers of operators' methods, and the thread that a call is answered on.
#include "broker/server/admin_calls.h"

#include <memory>

#include "proto/error_status.h"

namespace gmb::broker {

absl::Status NotOperator() {
  return proto::MakeError(
      v1::NOT_OPERATOR,
      "this call is for operators: connect through the admin socket");
}

absl::StatusOr<AuthenticatedCall> AdminCalls::Operator(
    grpc::CallbackServerContext* context) const {
  absl::StatusOr<AuthenticatedCall> call =
      authenticator_->Authenticate(*context);
  if (call.ok() && !call->caller.is_operator) return NotOperator();
  return call;
}

grpc::ServerUnaryReactor* AdminCalls::Answer(
    grpc::CallbackServerContext* context,
    const std::function<absl::Status()>& report) const {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<AuthenticatedCall> call = Operator(context);
  reactor->Finish(proto::ToGrpcStatus(call.ok() ? report() : call.status()));
  return reactor;
}

grpc::ServerUnaryReactor* AdminCalls::InTurn(
    grpc::CallbackServerContext* context,
    std::function<absl::Status(const AuditRecord&)> change) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
    return reactor;
  }
  Post([this, reactor, caller = std::move(call->caller),
        change = std::move(change)] {
    reactor->Finish(proto::ToGrpcStatus(change(RecordOf(caller))));
  });
  return reactor;
}

grpc::ServerUnaryReactor* AdminCalls::Begin(
    grpc::CallbackServerContext* context,
    std::function<void(const Caller&, const Finish&)> begin) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
    return reactor;
  }
  const auto held = std::make_shared<const AuthenticatedCall>(*std::move(call));
  Finish finish = [reactor, held](const absl::Status& status) {
    reactor->Finish(proto::ToGrpcStatus(status));
  };
  Post([held, finish = std::move(finish), begin = std::move(begin)] {
    begin(held->caller, finish);
  });
  return reactor;
}

AuditRecord AdminCalls::RecordOf(const Caller& caller) const {
  AuditRecord record;
  record.at = clock_->WallTime();
  record.operator_name = caller.name;
  return record;
}

}  // namespace gmb::broker
