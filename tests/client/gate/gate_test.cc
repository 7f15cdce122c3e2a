#include "client/gate/gate.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "client/gate/gate_scope.h"
#include "client/gate/nesting.h"
#include "tests/client/gate/gate_fixture.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

TEST_F(GateTest, IsOffUntilTheProgramTurnsItOn) {
  Make();
  EXPECT_EQ(word(), ipc::kGateOff);
  EXPECT_TRUE(gate_->Enter(kWait).ok());
  EXPECT_EQ(word().scopes(), 2u);
  EXPECT_TRUE(gate_->Leave());
  EXPECT_EQ(word(), ipc::kGateOff);
  EXPECT_EQ(owner_.synchronized(), 0);
  ASSERT_TRUE(gate_->TurnOn().ok());
  EXPECT_TRUE(AwaitState(GateState::kParked));
  EXPECT_EQ(owner_.synchronized(), 1);
}

TEST_F(GateTest, TurningOnTwiceCountsOnce) {
  MakeParked();
  ASSERT_TRUE(gate_->TurnOn().ok());
  EXPECT_TRUE(gate_->Enter(kWait).ok());
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_TRUE(gate_->Leave());
}

TEST_F(GateTest, TurnedOffItIsActiveAgain) {
  MakeParked();
  ASSERT_TRUE(gate_->TurnOff(kWait).ok());
  EXPECT_EQ(word().state(), GateState::kOpen);
  EXPECT_EQ(word().scopes(), 1u);
  ASSERT_TRUE(gate_->TurnOff(kWait).ok());
  EXPECT_EQ(word().scopes(), 1u);
  ASSERT_TRUE(gate_->TurnOn().ok());
  EXPECT_TRUE(AwaitState(GateState::kParked));
}

TEST_F(GateTest, TurningOffFailsAsEnteringDoesAndLeavesItOn) {
  MakeParked();
  ASSERT_TRUE(CloseGate(cells(), word()));
  EXPECT_EQ(gate_->TurnOff(absl::Milliseconds(1)).code(),
            absl::StatusCode::kDeadlineExceeded);
  Reopen();
  EXPECT_TRUE(gate_->TurnOff(kWait).ok());
}

TEST_F(GateTest, NestedScopesAreNotInTheWord) {
  MakeParked();
  auto outer = GateScope::Enter(*gate_, kWait);
  ASSERT_TRUE(outer.ok());
  const GateWord entered = word();
  {
    auto inner = GateScope::Enter(*gate_, kWait);
    auto capture = GateScope::EnterCapture(*gate_, kWait);
    ASSERT_TRUE(inner.ok() && capture.ok());
    EXPECT_EQ(word(), entered);
    EXPECT_EQ(gate_->depth(), 3u);
  }
  EXPECT_EQ(word(), entered);
  EXPECT_EQ(gate_->depth(), 1u);
}

TEST_F(GateTest, AScopeMovesWithinItsThread) {
  MakeParked();
  {
    auto scope = GateScope::Enter(*gate_, kWait);
    ASSERT_TRUE(scope.ok());
    const GateScope moved = *std::move(scope);
    EXPECT_EQ(word().scopes(), 1u);
  }
  EXPECT_EQ(word().scopes(), 0u);
}

TEST_F(GateTest, EveryFirstScopeIsANewEpochAndTheGateParksAgain) {
  MakeParked();
  for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
    ASSERT_TRUE(gate_->Enter(kWait).ok());
    EXPECT_EQ(word(), GateWord(GateState::kOpen, 1, epoch));
    EXPECT_TRUE(gate_->Leave());
    EXPECT_TRUE(AwaitState(GateState::kParked));
  }
}

TEST_F(GateTest, ScopesOfManyThreadsAreCountedAndTheLastOneParks) {
  MakeParked();
  constexpr int kThreads = 8;
  std::atomic<int> in{0};
  std::atomic<bool> out{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(gate_->Enter(kWait).ok());
      ++in;
      EXPECT_TRUE(Await([&] { return out.load(); }));
      EXPECT_TRUE(gate_->Leave());
    });
  }
  EXPECT_TRUE(Await([&] { return in == kThreads; }));
  EXPECT_EQ(word().scopes(), 8u);
  EXPECT_FALSE(CloseGate(cells(), word()));
  out = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(AwaitState(GateState::kParked));
}

TEST_F(GateTest, LeavingWhatOneIsNotInDoesNothing) {
  MakeParked();
  const GateWord before = word();
  EXPECT_FALSE(gate_->Leave());
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  std::thread other([&] { EXPECT_FALSE(gate_->Leave()); });
  other.join();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_TRUE(gate_->Leave());
  EXPECT_EQ(word().epoch(), before.epoch() + 1);
}

TEST_F(GateTest, AClosedGateOpensAfterARestore) {
  MakeParked();
  ASSERT_TRUE(CloseGate(cells(), word()));
  std::atomic<int> in{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(
          (i == 0 ? gate_->EnterCapture(kWait) : gate_->Enter(kWait)).ok());
      ++in;
      EXPECT_TRUE(gate_->Leave());
    });
  }
  EXPECT_TRUE(Await([&] { return owner_.restores() == 3; }));
  EXPECT_EQ(in, 0);
  EXPECT_EQ(word(), GateWord(GateState::kClosed, 0, 0));
  Reopen();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in, 3);
}

TEST_F(GateTest, ARestoreThatFailsFailsTheScope) {
  MakeParked();
  ASSERT_TRUE(CloseGate(cells(), word()));
  EXPECT_EQ(gate_->Enter(absl::Milliseconds(2)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(gate_->Enter(absl::ZeroDuration()).code(),
            absl::StatusCode::kDeadlineExceeded);
  owner_.SetAnswer(absl::ResourceExhaustedError("TENANT_LIMIT"));
  EXPECT_EQ(gate_->Enter(absl::InfiniteDuration()).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(gate_->depth(), 0u);
  EXPECT_FALSE(gate_->Leave());
  EXPECT_EQ(word(), GateWord(GateState::kClosed, 0, 0));
}

TEST_F(GateTest, ABrokerThatSaysItIsBackAndIsNotEndsInAnError) {
  MakeParked();
  ASSERT_TRUE(CloseGate(cells(), word()));
  owner_.SetAnswer(absl::OkStatus());
  EXPECT_EQ(gate_->Enter(absl::InfiniteDuration()).code(),
            absl::StatusCode::kUnavailable);
}

// park_after is an hour: only the pause can have woken the parker.
TEST_F(GateTest, UnderAPauseNestedScopesComeInNewOnesWaitAndTheLastOneParks) {
  Make(absl::Hours(1));
  ASSERT_TRUE(gate_->TurnOn().ok());
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  ipc::PauseGate(cells());
  EXPECT_TRUE(gate_->Enter(absl::ZeroDuration()).ok());
  EXPECT_TRUE(gate_->Leave());
  std::thread other([&] {
    EXPECT_TRUE(gate_->Enter(kWait).ok());
    EXPECT_TRUE(gate_->Leave());
  });
  EXPECT_TRUE(Await([&] { return owner_.restores() == 1; }));
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_TRUE(gate_->Leave());
  EXPECT_TRUE(AwaitState(GateState::kParked));
  EXPECT_TRUE(word().paused());
  ASSERT_TRUE(CloseGate(cells(), word()));
  EXPECT_FALSE(word().paused());
  Reopen();
  other.join();
}

TEST_F(GateTest, AWithdrawnPauseLetsScopesInAgain) {
  Make(absl::Hours(1));
  ASSERT_TRUE(gate_->TurnOn().ok());
  ipc::PauseGate(cells());
  gate_->PauseNoticed();
  EXPECT_TRUE(AwaitState(GateState::kParked));
  EXPECT_EQ(gate_->Enter(absl::Milliseconds(1)).code(),
            absl::StatusCode::kDeadlineExceeded);
  ipc::WithdrawPause(cells());
  EXPECT_TRUE(gate_->Enter(absl::ZeroDuration()).ok());
  EXPECT_TRUE(gate_->Leave());
}

TEST_F(GateTest, TheStampTellsWhenTheLastScopeWentOut) {
  MakeParked();
  const auto now = [] {
    return static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count());
  };
  constexpr uint64_t kCoarse = 100'000'000;
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  const uint64_t before = now();
  EXPECT_TRUE(gate_->Leave());
  const uint64_t left_at = cells().left_at_ns;
  EXPECT_GE(left_at + kCoarse, before);
  EXPECT_LE(left_at, now());
}

TEST_F(GateTest, AForkedChildsViewIsOffAndClear) {
  MakeParked();
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  const GateWord before = word();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Destroying a scope that was in at the fork calls Leave.
    const bool good =
        gate_->depth() == 0 && !gate_->Leave() &&
        gate_->Enter(kWait).code() == absl::StatusCode::kFailedPrecondition &&
        gate_->EnterCapture(kWait).code() ==
            absl::StatusCode::kFailedPrecondition &&
        gate_->TurnOn().code() == absl::StatusCode::kFailedPrecondition &&
        gate_->TurnOff(kWait).code() == absl::StatusCode::kFailedPrecondition;
    gate_->PauseNoticed();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(word(), before);
  EXPECT_EQ(gate_->depth(), 1u);
  EXPECT_TRUE(gate_->Leave());
}

TEST_F(GateTest, AThreadIsInScopesOfAFewGatesAtOnce) {
  TestOwner owner;
  std::vector<std::unique_ptr<Gate>> gates;
  for (int i = 0; i <= Nesting::kMostGates; ++i) {
    auto fd = ipc::CreateGatePage();
    ASSERT_TRUE(fd.ok());
    auto page = ipc::GatePage::Map(fd->get());
    ASSERT_TRUE(page.ok());
    gates.push_back(std::make_unique<Gate>(*std::move(page), &owner));
  }
  for (int i = 0; i < Nesting::kMostGates; ++i) {
    EXPECT_TRUE(gates[i]->Enter(kWait).ok());
    EXPECT_TRUE(gates[i]->Enter(kWait).ok());
  }
  Gate& last = *gates.back();
  EXPECT_EQ(last.Enter(kWait).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(last.EnterCapture(kWait).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(last.Leave());
  EXPECT_TRUE(gates[3]->Leave());
  EXPECT_TRUE(gates[3]->Leave());
  EXPECT_TRUE(last.Enter(kWait).ok());
  EXPECT_EQ(gates[4]->depth(), 2u);
  EXPECT_TRUE(last.Leave());
  for (int i = 0; i < Nesting::kMostGates; ++i) {
    EXPECT_EQ(gates[i]->Leave(), i != 3);
    EXPECT_EQ(gates[i]->Leave(), i != 3);
  }
}

TEST_F(GateTest, GarbageInThePageHangsNobody) {
  constexpr uint64_t kSeed = 99;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Make();
  owner_.SetAnswer(absl::OkStatus());
  ASSERT_TRUE(gate_->TurnOn().ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::mt19937_64 random(kSeed);
    while (!stop) {
      cells().word = random() & (random() % 2 == 0 ? ~uint64_t{0} : 7);
      cells().left_at_ns = random();
    }
  });
  for (int i = 0; i < 3000; ++i) {
    const absl::Status in = i % 3 == 0
                                ? gate_->EnterCapture(absl::Milliseconds(1))
                                : gate_->Enter(absl::Milliseconds(1));
    EXPECT_EQ(gate_->Leave(), in.ok());
  }
  stop = true;
  writer.join();
  gate_.reset();
}

}  // namespace
}  // namespace gmb::internal
