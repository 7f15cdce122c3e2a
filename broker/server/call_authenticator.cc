// Every gRPC call: finds the session of the token that it carries.
#include "broker/server/call_authenticator.h"

#include <utility>

namespace gmb::broker {
namespace {

absl::string_view Token(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find("gmb-session-bin");
  if (it == metadata.end()) return {};
  return {it->second.data(), it->second.size()};
}

}  // namespace

absl::StatusOr<AuthenticatedCall> CallAuthenticator::Authenticate(
    const grpc::ServerContextBase& context) const {
  GrpcConnections::Proof proof = connections_->Prove(context.peer());
  absl::StatusOr<Caller> caller =
      core_->Authenticate(Token(context), proof.pid());
  if (!caller.ok()) return caller.status();
  return AuthenticatedCall{*std::move(caller), std::move(proof)};
}

}  // namespace gmb::broker
