#ifndef GMB_BROKER_SERVER_GRPC_SERVER_H_
#define GMB_BROKER_SERVER_GRPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/gateway/gateway.h"
#include "broker/gateway/grpc_connections.h"
#include "broker/server/admin_service.h"
#include "broker/server/session_service.h"
#include "grpcpp/server.h"

namespace gmb::broker {

// The gRPC server: sessions, operators, the standard health service and
// reflection, over the connections that it is handed.
class GrpcServer {
 public:
  // All of them must outlive the server. `end_session`: see Gateway::Calls.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      GrpcConnections* connections, Gateway* gateway,
      std::function<void(uint64_t, std::string_view)> end_session,
      SessionService* sessions, AdminService* admin);
  ~GrpcServer();

  // The answer to health checks: SERVING until said otherwise.
  void SetServing(bool serving);
  // Takes no new calls and ends those that are open after `grace`; then hangs
  // up on peers that do not read.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(std::unique_ptr<grpc::Server> server, GrpcConnections* connections,
             Gateway* gateway)
      : connections_(connections),
        gateway_(gateway),
        server_(std::move(server)) {}

  GrpcConnections* const connections_;
  Gateway* const gateway_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_GRPC_SERVER_H_
