#include "broker/core/free_audit.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTolerance = 2 << 20;
constexpr quota::TenantId kA{1};
constexpr quota::TenantId kB{2};

TEST(FreeAudit, AFullRiseLeavesNothingUnreturned) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnDestroyed(kA, {8 * kGiB, 0, 92 * kGiB, 100 * kGiB});
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
  EXPECT_EQ(audit.outside_bytes(), 0u);
}

TEST(FreeAudit, WhatDoesNotComeBackIsTheLastHoldersUntilItDoes) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnDestroyed(kA, {8 * kGiB, 0, 92 * kGiB, 95 * kGiB});
  EXPECT_EQ(audit.unreturned().at(kA), 5 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 0u);
  audit.OnReading(100 * kGiB);
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
}

TEST(FreeAudit, BytesTakenPastTheBrokerAreOutside) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(90 * kGiB);
  audit.OnReading(4 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 6 * kGiB);
  audit.OnReading(10 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 0u);
}

TEST(FreeAudit, OutsideAndUnreturnedAreToldApart) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(50 * kGiB);
  audit.OnReading(49 * kGiB);  // a context: 1 GiB
  audit.OnDestroyed(kA, {4 * kGiB, 0, 49 * kGiB, 49 * kGiB});
  audit.OnDestroyed(kB, {2 * kGiB, 0, 49 * kGiB, 51 * kGiB});
  EXPECT_EQ(audit.unreturned().at(kA), 4 * kGiB);
  EXPECT_FALSE(audit.unreturned().contains(kB));
  EXPECT_EQ(audit.outside_bytes(), 1 * kGiB);
  audit.OnReading(55 * kGiB);  // A's process died
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
  EXPECT_EQ(audit.outside_bytes(), 1 * kGiB);
}

TEST(FreeAudit, WhatComesBackBeforeADestructionPaysToo) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(50 * kGiB);
  audit.OnReading(48 * kGiB);  // two contexts: 2 GiB
  audit.OnDestroyed(kA, {4 * kGiB, 0, 48 * kGiB, 51 * kGiB});
  ASSERT_EQ(audit.unreturned().at(kA), 1 * kGiB);
  // A process with one of the contexts has ended: that is how its slabs come to
  // be destroyed. Three are created in turn.
  audit.OnFreeRead(52 * kGiB);
  audit.OnCreated(3 * kGiB);
  audit.OnDestroyed(kB, {6 * kGiB, 3 * kGiB, 52 * kGiB, 55 * kGiB});
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
  EXPECT_EQ(audit.outside_bytes(), 2 * kGiB);
}

TEST(FreeAudit, SoItDoesWhereMoreIsCreatedInTurnThanIsFree) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(96 * kGiB);
  audit.OnReading(3 * kGiB);  // a context: 1 GiB
  audit.OnDestroyed(kA, {1 * kGiB, 0, 3 * kGiB, 3 * kGiB});
  ASSERT_EQ(audit.unreturned().at(kA), 1 * kGiB);
  audit.OnFreeRead(4 * kGiB);  // that process has ended
  audit.OnCreated(8 * kGiB);   // of what the eight leave
  audit.OnDestroyed(kB, {8 * kGiB, 8 * kGiB, 4 * kGiB, 4 * kGiB});
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
  EXPECT_EQ(audit.outside_bytes(), 1 * kGiB);
}

TEST(FreeAudit, WhatTheBrokerDoesBetweenReadingsIsNotOutside) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(10 * kGiB);
  audit.OnReading(90 * kGiB);
  audit.OnReadyDestroyed(4 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 0u);
  audit.OnCreated(6 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 0u);
  EXPECT_EQ(audit.free_bytes(), 88 * kGiB);
}

TEST(FreeAudit, SlabsCreatedInTurnAreNotHeldAgainstTheHolder) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnCreated(6 * kGiB);  // of what the eight leave
  audit.OnDestroyed(kA, {8 * kGiB, 6 * kGiB, 92 * kGiB, 94 * kGiB});
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
  EXPECT_EQ(audit.live_bytes(), 6 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 0u);
}

TEST(FreeAudit, WhatStrangersHoldIsToldAndChangesNoDebt) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnReading(91 * kGiB);  // a stranger's context: 1 GiB
  audit.OnDestroyed(kA, {8 * kGiB, 0, 91 * kGiB, 94 * kGiB});
  ASSERT_EQ(audit.unreturned().at(kA), 5 * kGiB);
  audit.OnStrangers(1 * kGiB);
  EXPECT_EQ(audit.unreturned_outside_bytes(), 0u);
  audit.OnStrangers(4 * kGiB);
  EXPECT_EQ(audit.unreturned_outside_bytes(), 3 * kGiB);
  EXPECT_EQ(audit.unreturned().at(kA), 5 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 1 * kGiB);
  audit.OnStrangers(50 * kGiB);  // more than is short
  EXPECT_EQ(audit.unreturned_outside_bytes(), 5 * kGiB);
  audit.OnReading(99 * kGiB);
  EXPECT_EQ(audit.unreturned_outside_bytes(), 0u);
}

TEST(FreeAudit, SmallDifferencesAreNobodys) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(kGiB);
  audit.OnDestroyed(kA, {kGiB, 0, 99 * kGiB, 100 * kGiB - kTolerance});
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
}

TEST(FreeAudit, AnothersReturnDoesNotPayForWhatIsKnownToBeHeld) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnDestroyed(kA, {4 * kGiB, 0, 92 * kGiB, 92 * kGiB});
  audit.OnDestroyed(kB, {4 * kGiB, 0, 92 * kGiB, 92 * kGiB});
  audit.OnReading(92 * kGiB, {{kA, 4 * kGiB}, {kB, 4 * kGiB}});
  audit.OnReading(96 * kGiB, {{kA, 4 * kGiB}});
  EXPECT_EQ(audit.unreturned().at(kA), 4 * kGiB);
  EXPECT_FALSE(audit.unreturned().contains(kB));
  audit.OnReading(100 * kGiB);
  EXPECT_EQ(audit.unreturned_bytes(), 0u);
}

TEST(FreeAudit, WhatIsKnownToBeHeldIsChargedToItsHolderHoweverSmall) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(4 * kTolerance);
  const uint64_t free_bytes = audit.free_bytes();
  audit.OnDestroyed(kA, {kTolerance, 0, free_bytes, free_bytes});
  audit.OnReading(free_bytes, {{kA, kTolerance}});
  EXPECT_EQ(audit.unreturned().at(kA), kTolerance);
  EXPECT_EQ(audit.outside_bytes(), 0u);
}

// The free figure suggested this before the slabs' holders were known.
TEST(FreeAudit, WhatAnotherWasChargedForIsTakenOffItAgain) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(8 * kGiB);
  audit.OnDestroyed(kA, {8 * kGiB, 0, 92 * kGiB, 96 * kGiB});
  ASSERT_EQ(audit.unreturned().at(kA), 4 * kGiB);
  audit.OnReading(96 * kGiB, {{kB, 4 * kGiB}});
  EXPECT_FALSE(audit.unreturned().contains(kA));
  EXPECT_EQ(audit.unreturned().at(kB), 4 * kGiB);
  EXPECT_EQ(audit.unreturned_bytes(), 4 * kGiB);
}

// Somebody who held memory before the first slab has ended.
TEST(FreeAudit, WhatRisesAboveTheBaselineIsToldAndTakenWhenSaid) {
  FreeAudit audit(100 * kGiB, kTolerance);
  audit.OnCreated(20 * kGiB);
  audit.OnReading(80 * kGiB + kTolerance);
  EXPECT_EQ(audit.risen_bytes(), 0U) << "noise";
  audit.OnReading(110 * kGiB);
  EXPECT_EQ(audit.risen_bytes(), 30 * kGiB);
  EXPECT_EQ(audit.baseline_bytes(), 100 * kGiB);
  audit.OnCreated(10 * kGiB);
  EXPECT_EQ(audit.risen_bytes(), 30 * kGiB) << "what we do is no rise";
  audit.RaiseBaseline(25 * kGiB);
  EXPECT_EQ(audit.baseline_bytes(), 125 * kGiB);
  EXPECT_EQ(audit.risen_bytes(), 5 * kGiB);
  // No further than it has risen by then.
  audit.OnReading(93 * kGiB);
  EXPECT_EQ(audit.outside_bytes(), 2 * kGiB);
  audit.RaiseBaseline(25 * kGiB);
  EXPECT_EQ(audit.baseline_bytes(), 125 * kGiB);
}

}  // namespace
}  // namespace gmb::broker
