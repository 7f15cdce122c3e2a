#ifndef GMB_BROKER_SERVER_GRPC_SERVER_H_
#define GMB_BROKER_SERVER_GRPC_SERVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/grpc_connections.h"
#include "broker/server/admin_service.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/refused_calls.h"
#include "broker/server/request_pace.h"
#include "broker/server/session_service.h"
#include "grpcpp/server.h"

namespace gmb::broker {

// gRPC over the connections that it is handed. Operators have everything: their
// own calls, the standard health service and reflection. Tenants are served by
// a server of its own, which knows the stream of a session alone and keeps no
// other call open: a call that is open costs memory, one of reflection a
// thread.
class GrpcServer {
 public:
  // All of them must outlive the server. `end_session`: see Gateway::Calls.
  // `pace`: of tenants' requests.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      GrpcConnections* connections, Gateway* gateway,
      std::function<void(uint64_t, std::string_view)> end_session, Core* core,
      const CallAuthenticator* calls, AdminService* admin,
      const RequestPace::Options& pace = {});
  ~GrpcServer();

  // Of tenants' requests; streams that come by another way count, too.
  [[nodiscard]] RequestPace* pace() { return &pace_; }
  // The answer to health checks: SERVING until said otherwise.
  void SetServing(bool serving);
  // Takes no new calls and ends those that are open after `grace`; then hangs
  // up on peers that do not read.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(GrpcConnections* connections, Gateway* gateway, Core* core,
             const CallAuthenticator* calls, const RequestPace::Options& pace)
      : connections_(connections),
        gateway_(gateway),
        pace_(pace),
        tenants_sessions_(core, calls, &pace_, &timed_),
        operators_sessions_(core, calls, &pace_, &timed_),
        refused_calls_(calls) {}

  void StartForTenants();
  void StartForOperators(AdminService* admin);
  void ShutDownBoth(std::chrono::system_clock::time_point deadline);

  GrpcConnections* const connections_;
  Gateway* const gateway_;
  RequestPace pace_;
  TimedWork timed_;
  SessionService tenants_sessions_;
  SessionService operators_sessions_;
  RefusedCalls refused_calls_;
  // Null until started.
  std::unique_ptr<grpc::Server> for_tenants_;
  std::unique_ptr<grpc::Server> for_operators_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_GRPC_SERVER_H_
