// Puts the gRPC services over connections that the gateway lets through.
#include "broker/server/grpc_server.h"

#include <chrono>
#include <functional>
#include <future>
#include <system_error>
#include <thread>
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
// How long peers have, after a shutdown's grace, to take what is on its way.
constexpr std::chrono::milliseconds kLastWords{500};

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
  const std::chrono::nanoseconds ends_in = absl::ToChronoNanoseconds(grace);
  connections_->StopServing();
  gateway_->StopAccepting();
  // gRPC waits for what it writes: for ever, if a peer does not read.
  std::promise<void> done;
  const auto hang_up_late = [this, ends_in, is_done = done.get_future()] {
    if (is_done.wait_for(ends_in + kLastWords) == std::future_status::timeout)
      connections_->HangUp();
  };
  std::thread late;
  try {
    late = std::thread(std::cref(hang_up_late));
  } catch (const std::system_error&) {
    connections_->HangUp();  // no thread is left: at once, then
  }
  server_->Shutdown(std::chrono::system_clock::now() + ends_in);
  done.set_value();
  if (late.joinable()) late.join();
}

}  // namespace gmb::broker
