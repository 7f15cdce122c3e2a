// Puts the gRPC services over connections that the gateway lets through.
#include "broker/server/grpc_server.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "broker/server/handle_frames.h"
#include "grpc/support/cpu.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_posix.h"

namespace gmb::broker {
namespace {

// The most that an operator's message may have.
constexpr int kMaxOperatorsMessageBytes = 256 * 1024;
// One Session stream a session, and a few calls of an operator.
constexpr int kMaxStreamsPerConnection = 64;
// How long peers have, after a shutdown's grace, to take what is on its way.
constexpr std::chrono::milliseconds kLastWords{500};

// Takes out what is added to every server of the process.
class NoPlugins : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->clear();
  }
};

void SetCommonOptions(grpc::ServerBuilder* builder) {
  // Pings that estimate a bandwidth have nothing to tell on a Unix socket, and
  // wake both ends.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              kMaxStreamsPerConnection);
  // gRPC bounds a message as it comes, and not what it is inflated to.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    GrpcConnections* connections, Gateway* gateway,
    std::function<void(uint64_t, std::string_view)> end_session, Core* core,
    const CallAuthenticator* calls, AdminService* admin,
    const RequestPace::Options& pace) {
  std::unique_ptr<GrpcServer> server(
      new GrpcServer(connections, gateway, core, calls, pace));
  server->StartForTenants();
  server->StartForOperators(admin);
  if (server->for_tenants_ == nullptr || server->for_operators_ == nullptr)
    return absl::InternalError("the gRPC server does not start");
  const auto hand_over_to = [](grpc::Server* to) {
    return [to](int fd) { grpc::AddInsecureChannelFromFd(to, fd); };
  };
  connections->Serve(hand_over_to(server->for_operators_.get()));
  gateway->Serve({.hand_over = hand_over_to(server->for_tenants_.get()),
                  .end_session = std::move(end_session)});
  return server;
}

void GrpcServer::StartForTenants() {
  grpc::ServerBuilder builder;
  builder.RegisterService(&tenants_sessions_);
  builder.RegisterCallbackGenericService(&refused_calls_);
  builder.SetOption(std::make_unique<NoPlugins>());
  builder.SetOption(
      std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  SetCommonOptions(&builder);
  for_tenants_ = builder.BuildAndStart();
}

void GrpcServer::StartForOperators(AdminService* admin) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&operators_sessions_);
  builder.RegisterService(admin);
  builder.SetMaxReceiveMessageSize(kMaxOperatorsMessageBytes);
  SetCommonOptions(&builder);
  for_operators_ = builder.BuildAndStart();
}

GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

void GrpcServer::SetServing(bool serving) {
  for_operators_->GetHealthCheckService()->SetServingStatus(serving);
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
  ShutDownBoth(std::chrono::system_clock::now() + ends_in);
  done.set_value();
  if (late.joinable()) late.join();
}

void GrpcServer::ShutDownBoth(std::chrono::system_clock::time_point deadline) {
  const auto shut_down = [deadline](grpc::Server* server) {
    if (server != nullptr) server->Shutdown(deadline);
  };
  std::thread tenants;
  try {
    tenants = std::thread(shut_down, for_tenants_.get());
  } catch (const std::system_error&) {
    shut_down(for_tenants_.get());  // no thread is left: one after the other
  }
  shut_down(for_operators_.get());
  if (tenants.joinable()) tenants.join();
}

}  // namespace gmb::broker

// gRPC sizes its pools of threads by the processors, and keeps every thread
// that a moment of load has once made: on a node of 192 up to 384, for a broker
// whose work is one state machine behind one lock. So it sees one processor,
// and keeps a handful. It asks by these two, and the dynamic linker prefers the
// program's own, as for recvmsg (gateway/grpc_system_calls.h). They go
// together: gRPC picks what it has one of for each processor by the number of
// the current one.
extern "C" {

unsigned gpr_cpu_num_cores(void) { return 1; }
unsigned gpr_cpu_current_cpu(void) { return 0; }

}  // extern "C"
