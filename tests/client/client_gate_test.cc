// The gate as programs see it, and what goes over the wire for it.
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

TEST_F(ClientGateTest, AGateThatWasOnStaysOnAsItWas) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  GateOptions first = AtOnce();
  first.group = "a";
  ASSERT_TRUE(InTime([&] { return client->TurnGateOn(first); }).ok());
  On(ClientMessage::kSetGate, [this](const ClientMessage& message) {
    broker().Refuse(message, proto::MakeError(v1::BAD_STATE, "another group"));
  });
  const GateOptions other{.park_after = absl::Hours(1), .group = "b"};
  const absl::Status refused =
      InTime([&] { return client->TurnGateOn(other); });
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(client->Enter(kWait).ok());
  EXPECT_TRUE(AwaitState(GateState::kParked)) << "as soon as before";
  On(ClientMessage::kSetGate, [](const ClientMessage&) {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->TurnGateOff(kWait)));
  ASSERT_TRUE(broker().WaitUntil(
      [&] { return broker().messages().back().set_gate().on(); }));
  EXPECT_EQ(broker().messages().back().set_gate().group(), "a");
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
  Lease lease = *InTime([&] { return client->Acquire(2 * kMiB); });
  ASSERT_TRUE(InTime([&] { return client->TurnGateOn(AtOnce()); }).ok());
  ASSERT_TRUE(Close());
  On(ClientMessage::kRestore, [](const ClientMessage&) {});
  char byte = 0;
  EXPECT_TRUE(absl::IsDeadlineExceeded(lease.CopyToHost(&byte, 0, 1)));
  On(ClientMessage::kRestore, [this](const ClientMessage& message) {
    (void)Reopen();
    broker().Serve(message);
  });
  EXPECT_TRUE(InTime([&] { return lease.Fill(0, 7, 2 * kMiB); }).ok());
  EXPECT_TRUE(InTime([&] { return lease.CopyToHost(&byte, 5, 1); }).ok());
  EXPECT_EQ(byte, 7);
  EXPECT_TRUE(AwaitState(GateState::kParked)) << "and leave it";
}

}  // namespace
}  // namespace gmb
