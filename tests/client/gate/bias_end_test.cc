// The biased gate when the memory is away, under pauses, and at a session's end.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/client/gate/bias_fixture.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

TEST_P(BiasTest, AClosedGateIsRestored) {
  Park();
  ASSERT_TRUE(CloseGate(cells(), word()));
  std::thread caller([&] { Call(); });
  EXPECT_TRUE(Await([&] { return owner_.restores() > 0; }));
  EXPECT_EQ(BiasSlots::Look().marked, 0);
  Reopen();
  caller.join();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_FALSE(bias_->closing());
}

TEST_P(BiasTest, APauseDrainsAndParks) {
  const Bias::Entry entry = Enter();
  ipc::PauseGate(cells());
  ASSERT_TRUE(StepTo(At::kDrain));
  idler_->Step(now_);
  EXPECT_EQ(idler_->at(), At::kDrain);
  std::atomic<bool> in{false};
  std::thread late([&] {
    const Bias::Entry waits = Enter();
    in = true;
    Leave(waits);
  });
  EXPECT_TRUE(Await([&] { return owner_.restores() > 0; }));
  Leave(entry);
  Round();
  EXPECT_TRUE(word().parked());
  EXPECT_FALSE(in);
  ipc::WithdrawPause(cells());
  owner_.SetAnswer(absl::OkStatus());
  late.join();
  EXPECT_EQ(word().scopes(), 1u);
}

TEST_P(BiasTest, APauseWaitsForTheProgramsOwnScopesToo) {
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  ipc::PauseGate(cells());
  ASSERT_TRUE(StepTo(At::kDrain));
  idler_->Step(now_);
  EXPECT_EQ(idler_->at(), At::kDrain);
  EXPECT_TRUE(gate_->Leave());
  Round();
  EXPECT_TRUE(word().parked());
  ipc::WithdrawPause(cells());
}

// It may wait for calls of other threads, as backward() does.
TEST_P(BiasTest, BesideAScopeOfTheProgramCallsOfOthersGoOn) {
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  Round();
  Round();
  EXPECT_EQ(word().scopes(), 2u) << "the standing scope stays beside it";
  ipc::PauseGate(cells());
  ASSERT_TRUE(StepTo(At::kDrain));
  now_ += std::chrono::milliseconds(101);
  idler_->Step(now_);
  std::thread([this] { Call(); }).join();
  EXPECT_EQ(owner_.restores(), 0);
  EXPECT_TRUE(gate_->Leave());
  ipc::WithdrawPause(cells());
}

TEST_P(BiasTest, SoTheyDoWhereItCameInBeforeThePause) {
  for (const bool heeded : {true, false}) {
    Park();
    ASSERT_TRUE(gate_->Enter(kWait).ok());
    EXPECT_EQ(word().scopes(), 1u) << "the standing scope is out";
    ipc::PauseGate(cells());
    if (heeded) {
      ASSERT_TRUE(StepTo(At::kDrain));
      idler_->Step(now_);
      EXPECT_EQ(idler_->at(), At::kDrain) << "it is no standing one";
      now_ += std::chrono::milliseconds(101);
    }
    idler_->Step(now_);  // else the next pauses are not heeded for a while
    EXPECT_EQ(word().scopes(), 2u);
    std::thread([this] { Call(); }).join();
    EXPECT_EQ(owner_.restores(), 0);
    EXPECT_TRUE(gate_->Leave());
    ipc::WithdrawPause(cells());
  }
}

TEST_P(BiasTest, ACaptureThatMeetsSyncIsInAsSoonAsItIsOver) {
  for (const At at : {At::kPark, At::kLookAgain}) {
    Call();
    ASSERT_TRUE(StepTo(At::kSync));
    if (at == At::kLookAgain) {
      ASSERT_TRUE(gate_->Enter(kWait).ok());
      EXPECT_TRUE(gate_->Leave());  // it has counted
    }
    ASSERT_TRUE(StepTo(at));
    std::atomic<bool> in{false};
    std::thread capture([&] {
      EXPECT_TRUE(gate_->EnterCapture(absl::Hours(1)).ok());
      in = true;
      EXPECT_TRUE(gate_->Leave());
    });
    EXPECT_FALSE(in);
    idler_->Step(now_);
    EXPECT_TRUE(Await([&] { return in.load(); }));
    capture.join();
    Call();  // the standing scope is back
  }
}

TEST_P(BiasTest, APauseThatComesDuringWorkHasItsTimeAndFailsThen) {
  devices_.work = IdlerDevices::Work::kBusy;
  ASSERT_TRUE(StepTo(At::kPoll));
  ipc::PauseGate(cells());
  EXPECT_EQ(idler_->Step(now_), now_) << "at once";
  EXPECT_EQ(idler_->at(), At::kRest);
  EXPECT_EQ(idler_->pauses_failed(), 0);
  ASSERT_TRUE(StepTo(At::kPoll));
  EXPECT_TRUE(bias_->closing());
  now_ += std::chrono::milliseconds(100);
  Round();
  EXPECT_EQ(idler_->pauses_failed(), 1);
  EXPECT_FALSE(bias_->closing());
  // Within the back-off it waits for the GPU all the same.
  ASSERT_TRUE(StepTo(At::kPoll));
  idler_->Step(now_);
  EXPECT_EQ(idler_->at(), At::kPoll);
  ipc::WithdrawPause(cells());
}

TEST_P(BiasTest, APauseThatDoesNotDrainGivesUp) {
  const Bias::Entry entry = Enter();
  ipc::PauseGate(cells());
  ASSERT_TRUE(StepTo(At::kDrain));
  now_ += std::chrono::milliseconds(101);
  idler_->Step(now_);
  EXPECT_EQ(idler_->at(), At::kRest);
  EXPECT_FALSE(bias_->closing());
  Leave(entry);
  ipc::WithdrawPause(cells());
}

TEST_P(BiasTest, AfterAFailedPauseTheNextOnesAreNotHeededForAWhile) {
  ipc::PauseGate(cells());
  std::chrono::seconds backoff(10);
  for (const int failed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const Bias::Entry entry = Enter();
    ASSERT_TRUE(StepTo(At::kDrain)) << failed;
    now_ += std::chrono::milliseconds(101);
    idler_->Step(now_);
    EXPECT_EQ(idler_->pauses_failed(), failed);
    EXPECT_EQ(idler_->backoff_until(), now_ + backoff);
    idler_->Step(now_ + backoff - std::chrono::milliseconds(1));
    EXPECT_FALSE(bias_->closing()) << failed;
    Leave(entry);
    now_ += backoff;
    backoff = std::min(backoff * 2, std::chrono::seconds(600));
  }
  Round();
  EXPECT_TRUE(word().parked()) << "without a call it parks all the same";
  EXPECT_EQ(idler_->pauses_failed(), 0);
  ipc::WithdrawPause(cells());
}

TEST_P(BiasTest, APauseThatIsNotHeededHasFailedAndStopsNobody) {
  devices_.heeds_pauses = false;
  ipc::PauseGate(cells());
  idler_->Step(now_);
  EXPECT_EQ(idler_->pauses_failed(), 1);
  EXPECT_EQ(idler_->backoff_until(), now_ + std::chrono::seconds(10));
  EXPECT_FALSE(bias_->closing());
  devices_.heeds_pauses = true;
  now_ += std::chrono::seconds(10);
  const Bias::Entry entry = Enter();
  EXPECT_TRUE(StepTo(At::kDrain)) << "the next one is";
  Leave(entry);
  ipc::WithdrawPause(cells());
}

TEST_P(BiasTest, AProcessThatMayNotParkIsOnlyLookedAt) {
  idler_->SetMayPark(false);
  Call();
  Round();
  EXPECT_FALSE(idler_->TakeQuietSeen()) << "a call since the counts were noted";
  Round();
  EXPECT_TRUE(idler_->TakeQuietSeen());
  EXPECT_FALSE(idler_->TakeQuietSeen());
  EXPECT_EQ(word().state(), GateState::kOpen);
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_FALSE(bias_->closing());
  ipc::PauseGate(cells());
  const Bias::Entry entry = Enter();
  idler_->Step(now_);
  EXPECT_FALSE(bias_->closing()) << "there is nothing to pause";
  Leave(entry);
  ipc::WithdrawPause(cells());
  idler_->SetMayPark(true);
  Park();
}

TEST_P(BiasTest, UnderAPauseACallLeavesTheBiasClosed) {
  ASSERT_TRUE(StepTo(At::kSync));  // the standing scope is out
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  ipc::PauseGate(cells());
  Call();  // inside of the scope
  EXPECT_TRUE(bias_->closing());
  EXPECT_TRUE(gate_->Leave());
  ipc::WithdrawPause(cells());
  Call();
  EXPECT_FALSE(bias_->closing());
  EXPECT_EQ(word().scopes(), 1u);
}

TEST_P(BiasTest, AfterTheSessionsEndCallsGoOnWhateverThePauseSays) {
  Park();
  ipc::PauseGate(cells());
  bias_->End();
  EXPECT_FALSE(bias_->closing());
  owner_.SetAnswer(absl::UnavailableError("over"));
  Call();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_EQ(idler_->Step(now_), Idler::TimePoint::max());
}

TEST_P(BiasTest, AnEndWhileTheIdlerClosesLetsEverybodyIn) {
  ASSERT_TRUE(StepTo(At::kLeave));
  ipc::PauseGate(cells());
  bias_->End();
  bias_->Close();
  owner_.SetAnswer(absl::UnavailableError("over"));
  Call();
  Round();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_FALSE(bias_->closing());
}

TEST_P(BiasTest, AfterTheSessionsEndCallsFailWhereTheMemoryIsAway) {
  Park();
  ASSERT_TRUE(CloseGate(cells(), word()));
  bias_->End();
  owner_.SetAnswer(absl::UnavailableError("over"));
  Bias::Entry entry{};
  EXPECT_EQ(bias_->Enter(*BiasSlots::Mine(), kWait, entry).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(BiasSlots::Look().marked, 0);
  EXPECT_EQ(word().state(), GateState::kClosed);
}

}  // namespace
}  // namespace gmb::internal
