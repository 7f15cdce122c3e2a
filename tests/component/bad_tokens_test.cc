// Tokens that are not the caller's, or nobody's; and leases that are not.
#include <string>
#include <vector>

#include "gmb/error.h"
#include "gmb/v1/admin.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "ipc/random.h"
#include "proto/error_status.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

class BadTokensTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    MakeTenant("b");
    before_ = Settle();
  }
  void TearDown() override {
    ExpectServed("b");
    ExpectBackTo(before_);
    ComponentTest::TearDown();
  }

  RawSession OpenAs(const std::string& tenant) const {
    return RawSession::Open(TenantDir(tenant)).value();
  }
  ErrorReason StreamReason(const std::string& socket_dir,
                           const std::optional<std::string>& token,
                           absl::StatusCode code) const {
    RawStream stream(socket_dir, token);
    stream.Send(AcquireMessage(1, 2 * kMiB));
    const absl::Status status = stream.Finish();
    EXPECT_EQ(status.code(), code) << status;
    return GetErrorDetail(status).value_or(ErrorDetail()).reason;
  }
  // Every method of Admin, called with this token.
  std::vector<absl::Status> CallAdmin(
      const std::string& socket_dir,
      const std::optional<std::string>& token) const;

  Footprint before_;
};

template <typename Request, typename Response>
absl::Status CallWith(v1::Admin::Stub* stub,
                      grpc::Status (v1::Admin::Stub::*method)(
                          grpc::ClientContext*, const Request&, Response*),
                      const std::optional<std::string>& token) {
  grpc::ClientContext context;
  if (token.has_value()) context.AddMetadata(kTokenKey, *token);
  Response response;
  return proto::FromGrpcStatus((stub->*method)(&context, Request(), &response));
}

std::vector<absl::Status> BadTokensTest::CallAdmin(
    const std::string& socket_dir,
    const std::optional<std::string>& token) const {
  using Stub = v1::Admin::Stub;
  const auto stub = v1::Admin::NewStub(OpenChannel(socket_dir));
  std::vector<absl::Status> all = {
      CallWith(stub.get(), &Stub::GetStatus, token),
      CallWith(stub.get(), &Stub::SetTenant, token),
      CallWith(stub.get(), &Stub::GetTenant, token),
      CallWith(stub.get(), &Stub::ListTenants, token),
      CallWith(stub.get(), &Stub::DeleteTenant, token),
      CallWith(stub.get(), &Stub::ListSessions, token),
      CallWith(stub.get(), &Stub::ListLeases, token),
      CallWith(stub.get(), &Stub::ResetTenant, token),
      CallWith(stub.get(), &Stub::Apply, token),
      CallWith(stub.get(), &Stub::CloseSession, token),
      CallWith(stub.get(), &Stub::ResizePool, token),
      CallWith(stub.get(), &Stub::DrainPool, token),
      CallWith(stub.get(), &Stub::Explain, token),
      CallWith(stub.get(), &Stub::Diagnose, token),
      CallWith(stub.get(), &Stub::ListAudit, token),
  };
  grpc::ClientContext context;
  if (token.has_value()) context.AddMetadata(kTokenKey, *token);
  const auto reader = stub->Watch(&context, v1::WatchRequest());
  v1::Event event;
  while (reader->Read(&event)) {
  }
  all.push_back(proto::FromGrpcStatus(reader->Finish()));
  return all;
}

TEST_F(BadTokensTest, NoTokenAndInventedOnesAreNoSession) {
  const std::string random = ipc::RandomToken(16).value();
  // By which this process may connect, whatever token it shows.
  const RawSession guest = OpenAs("a");
  for (const std::optional<std::string>& token :
       std::vector<std::optional<std::string>>{std::nullopt, "", random,
                                               std::string(16, '\0'), "short",
                                               std::string(4'000, 'x')}) {
    for (const std::string& door : {TenantDir("a"), SocketDir() + "/admin"}) {
      EXPECT_EQ(StreamReason(door, token, absl::StatusCode::kUnauthenticated),
                ErrorReason::kNoSession);
      for (const absl::Status& status : CallAdmin(door, token)) {
        EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
        EXPECT_EQ(GetErrorDetail(status).value_or(ErrorDetail()).reason,
                  ErrorReason::kNoSession);
      }
    }
  }
}

TEST_F(BadTokensTest, ATenantsTokenIsNotAnOperators) {
  const RawSession tenant = OpenAs("a");
  for (const absl::Status& status :
       CallAdmin(TenantDir("a"), tenant.welcome.token())) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_EQ(GetErrorDetail(status).value_or(ErrorDetail()).reason,
              ErrorReason::kNotOperator);
  }
}

TEST_F(BadTokensTest, AnOperatorsTokenOpensNoStreamOfLeases) {
  const RawSession self = RawSession::Open(SocketDir() + "/admin").value();
  EXPECT_EQ(StreamReason(SocketDir() + "/admin", self.welcome.token(),
                         absl::StatusCode::kFailedPrecondition),
            ErrorReason::kBadState);
}

TEST_F(BadTokensTest, ATokenEndsWithItsSession) {
  std::string token;
  {
    RawSession session = OpenAs("a");
    token = session.welcome.token();
    EXPECT_NE(session.OpenStream(TenantDir("a")), nullptr);
  }
  ExpectBackTo(before_);
  const RawSession guest = OpenAs("a");
  EXPECT_EQ(
      StreamReason(TenantDir("a"), token, absl::StatusCode::kUnauthenticated),
      ErrorReason::kNoSession);
}

// Of the process that greeted; another's are refused (grpc_connections_test).
TEST_F(BadTokensTest, ASecondStreamWithALiveTokenTakesTheFirstOnesPlace) {
  RawSession owner = OpenAs("a");
  const auto first = owner.OpenStream(TenantDir("a"));
  ASSERT_TRUE(first->Send(AcquireMessage(1, 4 * kMiB)));
  const auto grant = first->ReceiveAnswer(1);
  ASSERT_TRUE(grant.has_value() && grant->has_grant());
  ASSERT_TRUE(owner.TakeSlabs().ok());

  RawStream second(TenantDir("a"), owner.welcome.token());
  ASSERT_TRUE(second.Send(AcquireMessage(1, 4 * kMiB)));
  const auto again = second.ReceiveAnswer(1);
  ASSERT_TRUE(again.has_value() && again->has_grant());
  EXPECT_EQ(again->grant().lease_id(), grant->grant().lease_id())
      << "the same session: the request is answered alike";
  EXPECT_TRUE(absl::IsAborted(first->Finish()));
  ASSERT_TRUE(second.Send(AcquireMessage(2, 2 * kMiB)));
  ASSERT_TRUE(second.ReceiveAnswer(2).has_value());
  EXPECT_TRUE(owner.TakeSlabs().ok());
}

// A lease of `owner` exists; nobody else can name it, and it stays.
TEST_F(BadTokensTest, ALeaseIsItsSessionsAloneAndIsReleasedOnce) {
  RawSession owner = OpenAs("a");
  const auto stream = owner.OpenStream(TenantDir("a"));
  ASSERT_TRUE(stream->Send(AcquireMessage(1, 4 * kMiB)));
  const auto grant = stream->ReceiveAnswer(1);
  ASSERT_TRUE(grant.has_value() && grant->has_grant());
  ASSERT_TRUE(owner.TakeSlabs().ok());
  const uint64_t lease = grant->grant().lease_id();

  const auto reason = [](const std::optional<v1::BrokerMessage>& answer) {
    return answer.has_value() ? answer->error().detail().reason()
                              : v1::ERROR_REASON_UNSPECIFIED;
  };
  for (const std::string tenant : {"a", "b"}) {
    const RawSession other = OpenAs(tenant);
    const auto others = other.OpenStream(TenantDir(tenant));
    for (const uint64_t id : {lease, lease + 1, uint64_t{0}, ~uint64_t{0}}) {
      const uint64_t request = 1 + (id % 1000);
      others->Send(ReleaseMessage(request, id));
      EXPECT_EQ(reason(others->ReceiveAnswer(request)), v1::NO_SUCH_LEASE);
    }
    v1::ClientMessage mapped;
    mapped.mutable_mapped()->set_lease_id(lease);
    others->Send(mapped);  // has no answer, and no effect
    others->Send(ReleaseMessage(2'000, lease));
    EXPECT_EQ(reason(others->ReceiveAnswer(2'000)), v1::NO_SUCH_LEASE);
  }
  const auto leases = admin().ListLeases(v1::ListLeasesRequest());
  ASSERT_TRUE(leases.ok() && leases->leases_size() == 1);
  EXPECT_EQ(leases->leases(0).state(), v1::LeaseInfo::GRANTED);

  stream->Send(ReleaseMessage(2, lease));
  const auto released = stream->ReceiveAnswer(2);
  ASSERT_TRUE(released.has_value() && released->has_released());
  stream->Send(ReleaseMessage(3, lease));
  const auto again = stream->ReceiveAnswer(3);
  EXPECT_EQ(reason(again), v1::NO_SUCH_LEASE);
  EXPECT_EQ(again->error().code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace gmb::component
