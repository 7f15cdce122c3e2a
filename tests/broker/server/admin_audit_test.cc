// What operators ask of a core that refuses it, over the real service.
#include <gmock/gmock.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/server/admin_service.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/grpc_connections.h"
#include "broker/server/grpc_server.h"
#include "broker/server/session_service.h"
#include "broker/store/quota_store.h"
#include "grpcpp/create_channel.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_shared_fixture.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdminAuditTest : public CoreSharedTest {
 protected:
  void SetUp() override {
    CoreSharedTest::SetUp();
    store_ = QuotaStore::Open(directory_.path()).value();
    connections_ =
        GrpcConnections::Listen(directory_ / "gmb.sock", 0600).value();
    calls_ = std::make_unique<CallAuthenticator>(&core, connections_.get());
    session_service_ = std::make_unique<SessionService>(&core, calls_.get());
    const auto stays = [](const std::string&) { return absl::OkStatus(); };
    admin_service_ =
        std::make_unique<AdminService>(&core, store_.get(), &events, &clock,
                                       calls_.get(), TenantDoors{stays, stays});
    server_ = GrpcServer::Start(connections_.get(), session_service_.get(),
                                admin_service_.get())
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

  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::Admin::Stub::*method)(
                        grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.AddMetadata("gmb-session-bin", token_);
    return proto::FromGrpcStatus(
        (stub_.get()->*method)(&context, request, response));
  }
  absl::Status Drop(const std::string& name) {
    v1::DropLeaseRequest request;
    request.set_tenant("idle");
    request.set_name(name);
    v1::DropLeaseResponse response;
    return Call(&v1::Admin::Stub::DropLease, request, &response);
  }
  absl::Status Reclaim(int to = v1::ReclaimRequest::EVICT) {
    v1::ReclaimRequest request;
    request.set_tenant("idle");
    request.set_to(static_cast<v1::ReclaimRequest::Step>(to));
    v1::ReclaimResponse response;
    return Call(&v1::Admin::Stub::Reclaim, request, &response);
  }
  // Actions, the newest first.
  std::vector<std::string> Audit() {
    v1::ListAuditResponse list;
    const absl::Status listed =
        Call(&v1::Admin::Stub::ListAudit, v1::ListAuditRequest(), &list);
    EXPECT_TRUE(listed.ok()) << listed;
    std::vector<std::string> actions;
    for (const v1::AuditEntry& entry : list.entries())
      actions.push_back(entry.action());
    return actions;
  }
  static v1::ErrorReason ReasonOf(const absl::Status& status) {
    return proto::ToWireError(status).detail().reason();
  }

 private:
  const TempDirectory directory_;
  std::string token_;
  std::unique_ptr<QuotaStore> store_;
  std::unique_ptr<GrpcConnections> connections_;
  std::unique_ptr<CallAuthenticator> calls_;
  std::unique_ptr<SessionService> session_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

TEST_F(AdminAuditTest, WhatABrokerThatStopsRefusesIsNotListed) {
  const auto writer = Writer(4 * kMiB);
  core.RefuseWaiting();
  for (const absl::Status& refused : {Drop("weights"), Reclaim()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(refused), v1::DRAINING) << refused;
  }
  EXPECT_THAT(Audit(), IsEmpty());
  EXPECT_FALSE(Lease(shared_).dropped());
}

TEST_F(AdminAuditTest, WhatItsTenantDroppedFirstIsRefusedAndNotListed) {
  const auto writer = Writer(4 * kMiB);
  ASSERT_TRUE(CoreSharedTest::Drop(writer.get(), "weights").has_dropped());
  EXPECT_EQ(ReasonOf(Drop("weights")), v1::NO_SUCH_LEASE);
  EXPECT_EQ(ReasonOf(Reclaim(/*to=*/77)), v1::BAD_REQUEST);
  EXPECT_THAT(Audit(), IsEmpty());
}

TEST_F(AdminAuditTest, ATenantThatABrokersStopLeavesStays) {
  const auto idle = Connect("idle");
  std::future<absl::Status> deleted = std::async(std::launch::async, [this] {
    v1::DeleteTenantRequest request;
    request.set_name("idle");
    request.mutable_wait()->set_seconds(600);
    v1::DeleteTenantResponse response;
    return Call(&v1::Admin::Stub::DeleteTenant, request, &response);
  });
  (void)idle->Await(
      [](const v1::BrokerMessage& m) { return m.has_draining(); });
  EXPECT_THAT(Audit(), ElementsAre("see_off_tenant"));
  core.RefuseWaiting();
  EXPECT_EQ(ReasonOf(deleted.get()), v1::DRAINING);
  EXPECT_THAT(Audit(), ElementsAre("tenant_stays", "see_off_tenant"));
}

TEST_F(AdminAuditTest, WhatIsDoneIsListed) {
  const auto writer = Writer(4 * kMiB);
  EXPECT_TRUE(Drop("weights").ok());
  EXPECT_TRUE(Lease(shared_).dropped());
  EXPECT_TRUE(Reclaim(v1::ReclaimRequest::TRIM).ok());
  EXPECT_THAT(Audit(), ElementsAre("reclaim", "drop_lease"));
}

}  // namespace
}  // namespace gmb::broker
