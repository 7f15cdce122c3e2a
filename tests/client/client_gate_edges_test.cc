// The gate of brokers that have none, of children, and what is sealed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "client/session/session.h"
#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using ipc::GateState;
using v1::ClientMessage;

using ClientGateEdgesTest = test::ClientGateTest;

TEST_F(ClientGateEdgesTest, ABrokerWithoutAGateServesAllTheSame) {
  for (const uint32_t layout : {0U, 2U}) {
    const size_t fds = OpenFds();
    StartBroker({.gate_layout = layout});
    {
      const auto client = ConnectOrDie();
      const absl::Status on = client->TurnGateOn();
      EXPECT_TRUE(absl::IsFailedPrecondition(on)) << on;
      EXPECT_EQ(broker().Count(ClientMessage::kSetGate), 0);
      const absl::StatusOr<Scope> scope = client->Enter(absl::ZeroDuration());
      EXPECT_TRUE(scope.ok()) << scope.status();
      EXPECT_TRUE(client->TurnGateOff(kWait).ok());
      EXPECT_TRUE(client->Acquire(2 * kMiB)->Fill(0, 1, 1).ok());
    }
    StopBroker();
    EXPECT_LE(OpenFds(), fds + 8) << "gRPC keeps some";
  }
}

// As one does that is older than groups of sessions whose gate is off.
TEST_F(ClientGateEdgesTest, ABrokerThatDoesNotSayTheGroupHasNotTakenItIn) {
  StartBroker();
  ClientOptions options = Options();
  options.automatic_gate = true;
  const auto client = Client::Connect(std::move(options));
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status joined =
      internal::SessionOf(**client).gate_switch().JoinGroup("ranks");
  EXPECT_TRUE(absl::IsFailedPrecondition(joined)) << joined;
  EXPECT_EQ(broker().Count(ClientMessage::kSetGate), 1);
}

TEST_F(ClientGateEdgesTest, AGateThatIsNoneIsRefused) {
  v1::BrokerFrame challenge;
  challenge.mutable_challenge()->set_nonce(std::string(16, 'n'));
  challenge.mutable_challenge()->set_protocol_version(1);
  v1::BrokerFrame welcome;
  welcome.mutable_welcome()->set_session_id(1);
  welcome.mutable_welcome()->set_token(std::string(16, 't'));
  welcome.mutable_welcome()->set_gate_layout(1);
  StartBroker();
  const auto greet = [&](std::vector<int> fds) {
    broker().OnGreet([=](ipc::SeqpacketSocket& socket) {
      const absl::Duration patience = absl::Seconds(5);
      EXPECT_TRUE(
          socket.Send(challenge.SerializeAsString(), {}, false, patience).ok());
      EXPECT_TRUE(socket.Receive(patience).ok());
      EXPECT_TRUE(
          socket.Send(welcome.SerializeAsString(), fds, false, patience).ok());
      EXPECT_FALSE(socket.Receive(patience).ok());
    });
    return Client::Connect(Options()).status();
  };
  const base::UniqueFd good = *ipc::CreateGatePage();
  const base::UniqueFd loose(memfd_create("page", MFD_CLOEXEC));
  EXPECT_TRUE(absl::IsInternal(greet({})));
  EXPECT_TRUE(absl::IsInternal(greet({good.get(), good.get()})));
  EXPECT_TRUE(absl::IsInternal(greet({loose.get()})));
}

TEST_F(ClientGateEdgesTest, ASealIsAnsweredOrRefused) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(2 * kMiB);
  EXPECT_TRUE(lease.Seal().ok());
  EXPECT_EQ(broker().messages().back().seal().lease_id(), lease.id());
  On(ClientMessage::kSeal, [this](const ClientMessage& message) {
    broker().Refuse(message, proto::MakeError(v1::BAD_STATE, "DISCARD"));
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.Seal()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Lease().Seal()));
}

TEST_F(ClientGateEdgesTest, AForkedChildIsInNoScopeAndGetsInNone) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(2 * kMiB);
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  absl::StatusOr<Scope> scope = client->Enter(kWait);
  ASSERT_TRUE(scope.ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const absl::Status expected = client->status();
    const bool good =
        absl::IsFailedPrecondition(client->Enter(kWait).status()) &&
        absl::IsFailedPrecondition(client->EnterCapture(kWait).status()) &&
        absl::IsFailedPrecondition(client->TurnGateOn()) &&
        absl::IsFailedPrecondition(client->TurnGateOff(kWait)) &&
        absl::IsFailedPrecondition(lease.Seal()) &&
        absl::IsFailedPrecondition(lease.Fill(0, 1, 1)) &&
        absl::IsFailedPrecondition(client->SetTrimmable("", 1));
    scope->Leave();
    _exit(good && absl::IsFailedPrecondition(expected) ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Word().scopes(), 1U) << "the parent is still in";
  scope->Leave();
  EXPECT_TRUE(AwaitState(GateState::kParked));
}

}  // namespace
}  // namespace gmb
