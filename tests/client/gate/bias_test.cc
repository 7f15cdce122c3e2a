// Calls and the idler: who keeps the gate open, and who opens it again.
#include <gtest/gtest.h>

#include "tests/client/gate/bias_fixture.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

// For the tests of the other files, too.
INSTANTIATE_TEST_SUITE_P(Membarrier, BiasTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Asked" : "Refused";
                         });

TEST_P(BiasTest, ACallCountsAndLeavesTheWordAlone) {
  const GateWord before = word();
  EXPECT_EQ(before.scopes(), 1u);
  const uint64_t calls = BiasSlots::Look().calls;
  const Bias::Entry entry = Enter();
  EXPECT_EQ(word(), before);
  EXPECT_EQ(BiasSlots::Look().marked, 1);
  Leave(entry);
  EXPECT_EQ(BiasSlots::Look().marked, 0);
  EXPECT_EQ(BiasSlots::Look().calls, calls + 1);
}

TEST_P(BiasTest, ACallInsideCountsAndKeepsTheMark) {
  const uint64_t calls = BiasSlots::Look().calls;
  const Bias::Entry outer = Enter();
  Call();
  EXPECT_EQ(BiasSlots::Look().marked, 1);
  EXPECT_EQ(BiasSlots::Look().calls, calls + 1);
  Leave(outer);
  EXPECT_EQ(BiasSlots::Look().marked, 0);
}

TEST_P(BiasTest, AQuietProcessIsParkedAndItsNextCallPutsTheBiasBack) {
  Park();
  Call();
  EXPECT_EQ(word().state(), GateState::kOpen);
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_FALSE(bias_->closing());
  const GateWord open = word();
  Call();
  EXPECT_EQ(word(), open);
  Park();
}

TEST_P(BiasTest, ACallThatIsInKeepsTheGateOpen) {
  const Bias::Entry entry = Enter();
  Round();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_FALSE(bias_->closing());
  Leave(entry);
  Park();
}

TEST_P(BiasTest, ACallSinceTheCountsWereNotedKeepsTheGateOpen) {
  ASSERT_TRUE(StepTo(At::kPoll));
  Call();
  Round();
  EXPECT_EQ(word().scopes(), 1u);
  Park();
}

TEST_P(BiasTest, AScopeSinceTheCountsWereNotedKeepsTheGateOpen) {
  ASSERT_TRUE(StepTo(At::kLeave));
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  EXPECT_TRUE(gate_->Leave());
  Round();
  EXPECT_EQ(word().state(), GateState::kOpen);
  Park();
}

TEST_P(BiasTest, AScopeThatIsInKeepsTheGateOpen) {
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  Round();
  EXPECT_EQ(word().state(), GateState::kOpen);
  EXPECT_FALSE(bias_->closing()) << "the standing scope stays beside it";
  EXPECT_TRUE(gate_->Leave());
  Park();
}

TEST_P(BiasTest, ACallTakesTheGateBackFromSync) {
  ASSERT_TRUE(StepTo(At::kLookAgain));
  EXPECT_EQ(word().state(), GateState::kSync);
  Call();
  ASSERT_EQ(word().scopes(), 1u);
  Round();
  EXPECT_EQ(word().state(), GateState::kOpen);
}

TEST_P(BiasTest, ACallThatComesAfterTheSecondLookIsNotParkedOver) {
  ASSERT_TRUE(StepTo(At::kPark));
  const Bias::Entry entry = Enter();
  Round();
  EXPECT_EQ(word().state(), GateState::kOpen);
  Leave(entry);
}

TEST_P(BiasTest, TheStandingScopeStaysWhenACallHasOpenedTheBias) {
  ASSERT_TRUE(StepTo(At::kLook));
  Call();
  EXPECT_FALSE(bias_->closing());
  EXPECT_FALSE(bias_->LeaveStanding(now_));
  EXPECT_EQ(word().scopes(), 1u);
}

TEST_P(BiasTest, BusyWorkCapturesAndLostEventsKeepTheGateOpen) {
  devices_.work = IdlerDevices::Work::kBusy;
  ASSERT_TRUE(StepTo(At::kPoll));
  idler_->Step(now_);
  EXPECT_EQ(idler_->at(), At::kPoll);
  devices_.work = IdlerDevices::Work::kLost;
  Round();
  EXPECT_EQ(word().scopes(), 1u);
  devices_.work = IdlerDevices::Work::kDone;
  devices_.capture = true;
  Round();
  EXPECT_EQ(word().scopes(), 1u);
  devices_.capture = false;
  Park();
}

// The case of a signal handler that comes between the mark and the look: the
// call around it may have looked already, and relies on its mark.
TEST_P(BiasTest, ACallInsideOfAMarkKeepsItWhileItWaits) {
  ASSERT_TRUE(StepTo(At::kLook));
  BiasSlot& slot = *BiasSlots::Mine();
  slot.mark = BiasSlot::kMarked;
  const Bias::Entry inner = Enter();
  EXPECT_TRUE(inner.ordinary);
  EXPECT_EQ(slot.mark, BiasSlot::kMarked);
  Leave(inner);
  EXPECT_EQ(slot.mark, BiasSlot::kMarked);
  slot.mark = BiasSlot::kOut;
}

// As a question about a pointer does, which never waits.
TEST_P(BiasTest, WithoutMembarrierALookFencesItself) {
  BiasSlot& slot = *BiasSlots::Mine();
  uint32_t was = 0;
  EXPECT_EQ(MarkAndLook(slot, bias_->flags(), was), GetParam());
  if (!GetParam()) {
    EXPECT_TRUE(FenceAndLook(slot, bias_->flags()));
    EXPECT_EQ(slot.mark.load(), BiasSlot::kLetIn);
  }
  Unmark(slot, was);
  bias_->Close();
  EXPECT_FALSE(MarkAndLook(slot, bias_->flags(), was));
  EXPECT_FALSE(FenceAndLook(slot, bias_->flags()));
  Unmark(slot, was);
  bias_->GiveUp();
}

TEST_P(BiasTest, ACallInsideOfAMarkLooksByItself) {
  Park();
  BiasSlot& slot = *BiasSlots::Mine();
  slot.mark = BiasSlot::kMarked;
  const Bias::Entry inner = Enter();
  EXPECT_TRUE(inner.ordinary);
  EXPECT_EQ(word().state(), GateState::kOpen);
  Leave(inner);
  slot.mark = BiasSlot::kOut;
}

}  // namespace
}  // namespace gmb::internal
