// The gate as programs see it, and what goes over the wire for it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using ipc::GateState;
using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientGateTest = test::ClientGateTest;

TEST_F(ClientGateTest, OffItCountsAsActiveAndScopesComeIn) {
  StartBroker();
  const auto client = ConnectOrDie();
  EXPECT_EQ(Word().state(), GateState::kOpen);
  EXPECT_EQ(Word().scopes(), 1U);
  const absl::StatusOr<Scope> scope = client->Enter(absl::ZeroDuration());
  EXPECT_TRUE(scope.ok()) << scope.status();
  EXPECT_EQ(Word().scopes(), 2U);
}

TEST_F(ClientGateTest, OnItTellsTheBrokerAndParks) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(2 * kMiB);
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  EXPECT_EQ(broker().Count(ClientMessage::kSetGate), 1);
  EXPECT_TRUE(AwaitState(GateState::kParked));
  {
    absl::StatusOr<Scope> outer = client->Enter(kWait);
    ASSERT_TRUE(outer.ok()) << outer.status();
    const absl::StatusOr<Scope> inner = client->EnterCapture(kWait);
    EXPECT_TRUE(inner.ok()) << inner.status();
    EXPECT_EQ(Word().scopes(), 1U);
    const Scope moved = *std::move(outer);
    EXPECT_EQ(Word().scopes(), 1U);
  }
  EXPECT_TRUE(AwaitState(GateState::kParked));
  ASSERT_TRUE(client->TurnGateOff(kWait).ok());
  EXPECT_EQ(Word().state(), GateState::kOpen);
  EXPECT_EQ(broker().Count(ClientMessage::kSetGate), 2);
  EXPECT_FALSE(broker().messages().back().set_gate().on());
}

TEST_F(ClientGateTest, ARefusedGateIsOffAgain) {
  StartBroker();
  const auto client = ConnectOrDie();
  On(ClientMessage::kSetGate, [this](const ClientMessage& message) {
    broker().Refuse(message, proto::MakeError(v1::BAD_STATE, "not now"));
  });
  const absl::Status refused = client->TurnGateOn(AtOnce());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(refused.message(), "not now");
  EXPECT_EQ(Word().state(), GateState::kOpen);
  EXPECT_EQ(Word().scopes(), 1U);
}

TEST_F(ClientGateTest, AGateThatTheBrokerDoesNotAnswerForIsOffAtBothSides) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  On(ClientMessage::kSetGate, [](const ClientMessage&) {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->TurnGateOn(AtOnce())));
  EXPECT_EQ(Word().scopes(), 1U);
  ASSERT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kSetGate) == 2; }));
  EXPECT_FALSE(broker().messages().back().set_gate().on());
}

TEST_F(ClientGateTest, AGateThatMayNotBeTurnedOffStaysOn) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  On(ClientMessage::kSetGate, [this](const ClientMessage& message) {
    broker().Refuse(message, proto::MakeError(v1::OVERCOMMITTED, "lent"));
  });
  const absl::Status refused = client->TurnGateOff(kWait);
  EXPECT_EQ(GetErrorDetail(refused)->reason, ErrorReason::kOvercommitted);
  EXPECT_TRUE(AwaitState(GateState::kParked));
}

TEST_F(ClientGateTest, ClosedItAsksForTheMemoryAndComesIn) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  std::atomic<bool> reopened = false;
  On(ClientMessage::kRestore, [&](const ClientMessage& message) {
    EXPECT_GT(message.restore().wait().seconds(), 10);
    reopened = Reopen();
    broker().Serve(message);
  });
  const absl::StatusOr<Scope> scope = client->Enter(kWait);
  EXPECT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(reopened);
  EXPECT_EQ(Word().state(), GateState::kOpen);
}

TEST_F(ClientGateTest, ManyThreadsWaitForOneClosedGate) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  constexpr int kThreads = 6;
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    if (broker().Count(ClientMessage::kRestore) == kThreads) {
      (void)Reopen();
      ServeRestores();
    } else if (Word().state() != GateState::kClosed) {
      broker().Serve(message);
    }
  });
  std::atomic<int> in = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { in += client->Enter(kWait).ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in, kThreads);
}

TEST_F(ClientGateTest, ARefusedRestoreIsTheErrorOfEnter) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    broker().Refuse(message, proto::MakeError(v1::CONTENTS_LOST, "gone"));
  });
  const absl::Status refused = client->Enter(kWait).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_EQ(GetErrorDetail(refused)->reason, ErrorReason::kContentsLost);
}

TEST_F(ClientGateTest, AnUnansweredRestoreIsTooLateAndNotRepeated) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore, [](const ClientMessage&) {});
  const absl::Status late = client->Enter(absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("did not come back"));
  broker().BreakStream();
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().streams() == 2; }));
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(broker().Count(ClientMessage::kRestore), 1);
}

TEST_F(ClientGateTest, ARestoreIsRepeatedWhenTheStreamBreaks) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    if (broker().Count(ClientMessage::kRestore) == 1)
      return broker().BreakStream();
    (void)Reopen();
    broker().Serve(message);
  });
  EXPECT_TRUE(client->Enter(kWait).ok());
  EXPECT_EQ(broker().streams(), 2);
}

TEST_F(ClientGateTest, TheEndOfTheSessionEndsWaitingScopes) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore,
     [this](const ClientMessage&) { broker().HangUp(); });
  const absl::Status over = client->Enter(kWait).status();
  EXPECT_TRUE(absl::IsUnavailable(over)) << over;
  EXPECT_TRUE(absl::IsUnavailable(client->Enter(kWait).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->TurnGateOff(kWait)));
}

TEST_F(ClientGateTest, APauseParksWithoutWaitingForParkAfter) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn({.park_after = absl::Hours(1)}).ok());
  ipc::PauseGate(broker().gate());
  v1::BrokerMessage pausing;
  pausing.mutable_pausing();
  broker().Say(pausing);
  EXPECT_TRUE(AwaitState(GateState::kParked));
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    ipc::WithdrawPause(broker().gate());
    broker().Serve(message);
  });
  EXPECT_TRUE(client->Enter(kWait).ok());
}

TEST_F(ClientGateTest, CopiesEnterTheGateThemselves) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  Lease lease = *client->Acquire(2 * kMiB);
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore, [](const ClientMessage&) {});
  char byte = 0;
  EXPECT_TRUE(absl::IsDeadlineExceeded(lease.CopyToHost(&byte, 0, 1)));
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    (void)Reopen();
    broker().Serve(message);
  });
  EXPECT_TRUE(lease.Fill(0, 7, 2 * kMiB).ok());
  EXPECT_TRUE(lease.CopyToHost(&byte, 5, 1).ok());
  EXPECT_EQ(byte, 7);
  EXPECT_TRUE(AwaitState(GateState::kParked)) << "and leave it";
}

TEST_F(ClientGateTest, ABrokerWithoutAGateServesAllTheSame) {
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

TEST_F(ClientGateTest, AGateThatIsNoneIsRefused) {
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
  const ipc::UniqueFd good = *ipc::CreateGatePage();
  const ipc::UniqueFd loose(memfd_create("page", MFD_CLOEXEC));
  EXPECT_TRUE(absl::IsInternal(greet({})));
  EXPECT_TRUE(absl::IsInternal(greet({good.get(), good.get()})));
  EXPECT_TRUE(absl::IsInternal(greet({loose.get()})));
}

TEST_F(ClientGateTest, ASealIsAnsweredOrRefused) {
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

TEST_F(ClientGateTest, AForkedChildIsInNoScopeAndGetsInNone) {
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
