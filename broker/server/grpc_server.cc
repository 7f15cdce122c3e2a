// Puts the gRPC services over connections that the gateway lets through.
#include "broker/server/grpc_server.h"

#include <chrono>
#include <utility>

#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_posix.h"

namespace gmb::broker {
namespace {

// No message to the broker is larger than a few hundred bytes.
constexpr int kMaxIncomingBytes = 256 * 1024;
// One Session stream a connection, and a few calls of an operator.
constexpr int kMaxStreamsPerConnection = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    GrpcConnections* connections, Gateway* gateway,
    std::function<void(uint64_t, std::string_view)> end_session,
    SessionService* sessions, AdminService* admin) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(sessions);
  builder.RegisterService(admin);
  builder.SetMaxReceiveMessageSize(kMaxIncomingBytes);
  // Pings that estimate a bandwidth have nothing to tell on a Unix socket, and
  // wake both ends.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kMaxStreamsPerConnection);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::InternalError("the gRPC server does not start");
  }
  const auto hand_over = [raw = server.get()](int fd) {
    grpc::AddInsecureChannelFromFd(raw, fd);
  };
  connections->Serve(hand_over);
  gateway->Serve(
      {.hand_over = hand_over, .end_session = std::move(end_session)});
  return std::unique_ptr<GrpcServer>(
      new GrpcServer(std::move(server), connections, gateway));
}

GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

void GrpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Shutdown(absl::Duration grace) {
  connections_->StopServing();
  gateway_->StopAccepting();
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::nanoseconds(absl::ToInt64Nanoseconds(grace)));
}

}  // namespace gmb::broker
