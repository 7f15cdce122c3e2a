#ifndef GMB_BROKER_SERVER_CALL_AUTHENTICATOR_H_
#define GMB_BROKER_SERVER_CALL_AUTHENTICATOR_H_

#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/gateway/grpc_connections.h"
#include "grpcpp/server_context.h"

namespace gmb::broker {

// The caller of a call. Keep `proof` while the call is open: its connection
// then never has to make room for others.
struct AuthenticatedCall {
  Caller caller;
  GrpcConnections::Proof proof;
};

// Knows callers by their token (metadata "gmb-session-bin"), which counts only
// from the process that the session belongs to. Thread-safe.
class CallAuthenticator {
 public:
  // Both must outlive it.
  CallAuthenticator(const Core* core, GrpcConnections* connections)
      : core_(core), connections_(connections) {}

  // NO_SESSION: the token is nobody's, or another process's.
  [[nodiscard]] absl::StatusOr<AuthenticatedCall> Authenticate(
      const grpc::ServerContextBase& context) const;

 private:
  const Core* const core_;
  GrpcConnections* const connections_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_CALL_AUTHENTICATOR_H_
