#ifndef GMB_TESTS_BROKER_SERVER_ADMIN_FIXTURE_H_
#define GMB_TESTS_BROKER_SERVER_ADMIN_FIXTURE_H_

#include <unistd.h>

#include <memory>
#include <string>

#include "base/mutex.h"
#include "broker/gateway/grpc_connections.h"
#include "broker/server/admin_service.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/grpc_server.h"
#include "broker/store/quota_store.h"
#include "grpcpp/create_channel.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_shared_fixture.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {

// Operators' calls over the real service, with a store in a directory of its
// own.
class AdminFixture : public CoreSharedTest {
 protected:
  explicit AdminFixture(const std::string& disk = "/tmp") : directory_(disk) {}

  void SetUp() override {
    CoreSharedTest::SetUp();
    OpenStore();
    connections_ =
        GrpcConnections::Listen(directory_ / "gmb.sock", 0600, disposer_.get())
            .value();
    gateway_ =
        Gateway::Create({}, &admission_, connections_.get(), disposer_.get())
            .value();
    calls_ = std::make_unique<CallAuthenticator>(&core, connections_.get());
    const auto opens = [](const std::string&) { return absl::OkStatus(); };
    const auto closes = [this](const std::string& tenant) {
      if (tenant == "doorstop") base::MutexLock until_let_go(&doorstop_);
      return absl::OkStatus();
    };
    admin_service_ = std::make_unique<AdminService>(
        &core, store_.get(), &events, &clock, calls_.get(),
        AdminServiceOptions{.doors = {opens, closes},
                            .read_tenants = Reader()});
    server_ = GrpcServer::Start(
                  connections_.get(), gateway_.get(),
                  [](uint64_t /*session*/, std::string_view /*reason*/) {},
                  &core, calls_.get(), admin_service_.get(), Pace())
                  .value();
    PeerIdentity peer;
    peer.origin = Origin::kAdmin;
    peer.pid = ::getpid();
    const OpenedSession operators = core.OpenSession(peer).value();
    sessions.push_back(operators.id);
    token_ = operators.token;
    stub_ = v1::Admin::NewStub(
        grpc::CreateChannel("unix:" + (directory_ / "gmb.sock"),
                            grpc::InsecureChannelCredentials()));
  }

  [[nodiscard]] virtual RequestPace::Options Pace() const { return {}; }
  [[nodiscard]] virtual ReadTenants Reader() { return {}; }

  virtual void OpenStore() {
    store_ = QuotaStore::Open(directory_.path()).value();
  }

  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::Admin::Stub::*method)(
                        grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.AddMetadata("gmb-session-bin", token_);
    return proto::FromGrpcStatus(
        (stub_.get()->*method)(&context, request, response));
  }
  static v1::ErrorReason ReasonOf(const absl::Status& status) {
    return proto::ToWireError(status).detail().reason();
  }

  base::Mutex doorstop_;           // the operators' thread waits for it
  const TempDirectory directory_;  // for sockets and the store
  std::string token_;
  std::unique_ptr<QuotaStore> store_;
  const std::unique_ptr<ipc::FdDisposer> disposer_ = *ipc::FdDisposer::Start();
  Admission admission_;
  std::unique_ptr<GrpcConnections> connections_;
  std::unique_ptr<Gateway> gateway_;  // nobody comes by it unless let in
  std::unique_ptr<CallAuthenticator> calls_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_SERVER_ADMIN_FIXTURE_H_
