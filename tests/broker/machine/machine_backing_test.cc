// Parked memory that is copied to the host pool before anybody needs it
// (docs/eviction.md, "Backing ahead").
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineBackingTest : public MachineFixture {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.options.backing.bytes_per_second = 8 * kGranule;
    shape.options.backing.burst_bytes = 16 * kGranule;
    shape.options.backing.idle_for = seconds(1);
    return shape;
  }
  explicit MachineBackingTest(const MachineWorld& shape = Shape())
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b", {.guarantee = 16});
  }
  uint64_t Backed(const std::string& tenant) {
    return InHostPool(tenant).true_bytes / kGranule;
  }
};

TEST_F(MachineBackingTest, WhatIsParkedForLongEnoughIsCopied) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  Write(idle, lease, 700);
  const std::vector<uint64_t> written = Read(idle, lease);
  RunFor(milliseconds(900));
  EXPECT_EQ(world.copies_out, 0u);
  RunFor(milliseconds(500));
  EXPECT_EQ(Backed("a"), 8u);
  EXPECT_EQ(Events("backed").size(), 1u);
  EXPECT_EQ(Where(lease), "mapped") << "its program notices nothing";
  EXPECT_FALSE(IsClosed(idle));
  const uint64_t copied = world.copies_out;
  Reclaim("a");
  Follow(idle);
  EXPECT_EQ(Where(lease), "evicted") << "taking it costs no copy";
  EXPECT_EQ(world.copies_out, copied);
  Restore(idle);
  Work();
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineBackingTest, ACopyIsUntrueOnceAScopeWasIn) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  RunFor(seconds(2));
  ASSERT_EQ(Backed("a"), 8u);
  EXPECT_TRUE(Enter(idle));
  Write(idle, lease, 800);
  const std::vector<uint64_t> written = Read(idle, lease);
  Park(idle);
  Reclaim("a");
  Work();
  Restore(idle);
  Work();
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineBackingTest, AScopeThatComesInDuringTheCopyMakesItUntrue) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 8);
  for (int i = 0; i < 200 && world.copies_out == 0; ++i)
    world.Advance(milliseconds(10));
  ASSERT_GT(world.copies_out, 0u);
  EXPECT_TRUE(Enter(idle)) << "it is not held up by that";
  Write(idle, lease, 900);
  RunCopies();
  EXPECT_EQ(Backed("a"), 0u);
  EXPECT_TRUE(Events("backed").empty());
}

TEST_F(MachineBackingTest, WhoIsAtWorkIsNotCopied) {
  Lease(Active("a"), 8);
  RunFor(seconds(5));
  EXPECT_EQ(world.copies_out, 0u);
}

TEST_F(MachineBackingTest, NothingIsCopiedWhileSomebodyWaits) {
  Lease(Active("a"), 44);
  Lease(Parked("b"), 8);
  SimClient* waiter = Parked("a");
  const uint64_t id = Ask(waiter, 14, {.wait = seconds(3)});
  ASSERT_EQ(Outcome(waiter, id), "waits");
  RunFor(milliseconds(2900));
  EXPECT_EQ(world.copies_out, 0u) << "the bus is for who waits";
  RunFor(seconds(2));
  EXPECT_GT(world.copies_out, 0u);
}

TEST_F(MachineBackingTest, ItKeepsToItsRate) {
  Lease(Parked("a"), 60);
  RunFor(seconds(1));
  uint64_t last = 0;
  for (int second = 1; second <= 5; ++second) {
    RunFor(seconds(1));
    uint64_t copied = world.copies_out * 2;  // granules: slabs of two
    EXPECT_LE(copied, 16u + 8u * static_cast<uint64_t>(second + 1)) << second;
    EXPECT_GT(copied, last) << "and goes on";
    last = copied;
  }
}

TEST_F(MachineBackingTest, TheLikeliestVictimComesFirst) {
  Lease(Parked("b"), 16);  // within its guarantee
  Lease(Parked("a"), 16);  // borrowed
  for (int i = 0; i < 200 && world.copies_out == 0; ++i)
    world.Advance(milliseconds(10));
  RunCopies();
  EXPECT_EQ(Backed("b"), 0u);
  EXPECT_EQ(Backed("a"), 16u);
}

TEST_F(MachineBackingTest, WhatMayBeLostOrStaysIsNotCopied) {
  SimClient* idle = Parked("a");
  Lease(idle, 8, {.contents = v1::DISCARD});
  Lease(idle, 8, {.contents = v1::RESIDENT});
  RunFor(seconds(5));
  EXPECT_EQ(world.copies_out, 0u);
}

TEST_F(MachineBackingTest, ACopyThatFailsIsTriedAgainAfterTenSeconds) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 2);
  for (int i = 0; i < 200 && world.copies_out == 0; ++i)
    world.Advance(milliseconds(10));
  RunCopies(/*fail=*/true);
  EXPECT_EQ(Backed("a"), 0u);
  EXPECT_EQ(Where(lease), "mapped");
  const uint64_t copied = world.copies_out;
  RunFor(seconds(9));
  EXPECT_EQ(world.copies_out, copied);
  RunFor(seconds(2));
  EXPECT_EQ(Backed("a"), 2u);
}

TEST_F(MachineBackingTest, AGateThatIsTurnedOffGivesItsRoomBack) {
  SimClient* idle = Parked("a");
  Lease(idle, 8);
  RunFor(seconds(2));
  ASSERT_EQ(Backed("a"), 8u);
  EXPECT_TRUE(Enter(idle));
  EXPECT_EQ(Outcome(idle, SetGate(idle, false)), "gate set");
  EXPECT_EQ(Backed("a"), 0u);
  EXPECT_EQ(InHostPool("a").reserved_bytes, 0u);
}

class MachineNoBackingTest : public MachineBackingTest {
 protected:
  MachineNoBackingTest() : MachineBackingTest(MachineWorld()) {}
};

TEST_F(MachineNoBackingTest, ItIsOffByDefault) {
  Lease(Parked("a"), 8);
  RunFor(seconds(30));
  EXPECT_EQ(world.copies_out, 0u);
}

class MachineSealedBackingTest : public MachineBackingTest {
 protected:
  static MachineWorld SealedAlone() {
    MachineWorld shape = Shape();
    shape.options.backing.sealed_bytes_per_second =
        std::exchange(shape.options.backing.bytes_per_second, 0);
    return shape;
  }
  MachineSealedBackingTest() : MachineBackingTest(SealedAlone()) {}

  // A request waits in vain.
  void LackMemory() {
    SimClient* holder = Active("b");
    const quota::LeaseId most = Lease(holder, 40);
    SimClient* waiter = Parked("a");
    const uint64_t id = Ask(waiter, 40, {.wait = milliseconds(100)});
    ASSERT_EQ(Outcome(waiter, id), "waits");
    RunFor(milliseconds(200));
    Release(holder, most);
  }
};

TEST_F(MachineSealedBackingTest, SealedMemoryIsCopiedOnceWhereMemoryWasLacked) {
  SimClient* idle = Parked("a");
  Lease(idle, 8);
  const quota::LeaseId sealed = Lease(idle, 4);
  Seal(idle, sealed);
  RunFor(seconds(30));
  EXPECT_EQ(world.copies_out, 0u) << "nobody lacks memory";
  LackMemory();
  RunFor(seconds(5));
  EXPECT_EQ(Backed("a"), 4u) << "and not what may be written";
  const uint64_t copied = world.copies_out;
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(Enter(idle));
    Park(idle);
    RunFor(seconds(5));
  }
  EXPECT_EQ(world.copies_out, copied) << "it stays true";
}

TEST_F(MachineSealedBackingTest, TenMinutesAfterTheLastLackNoneIsCopied) {
  LackMemory();
  RunFor(std::chrono::minutes(10));
  SimClient* idle = Parked("a");
  Seal(idle, Lease(idle, 4));
  RunFor(seconds(30));
  EXPECT_EQ(world.copies_out, 0u);
}

// As `gmbd` comes: sealed memory alone, many leases and much room.
class MachineManySealedTest : public MachineFixture {
 protected:
  static MachineWorld Shape(uint64_t host_granules = 4096) {
    MachineWorld shape;
    shape.granules = 4096;
    shape.host_granules = host_granules;
    shape.options.backing.sealed_bytes_per_second = uint64_t{4} << 30;
    return shape;
  }
  explicit MachineManySealedTest(const MachineWorld& shape = Shape())
      : MachineFixture(shape) {}
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    SimClient* holder = Active("b");
    const quota::LeaseId most = Lease(holder, 4000);
    SimClient* waiter = Parked("a");
    const uint64_t id = Ask(waiter, 2000, {.wait = milliseconds(100)});
    ASSERT_EQ(Outcome(waiter, id), "waits");
    RunFor(milliseconds(200));
    Release(holder, most);
  }
  uint64_t Backed() { return InHostPool("a").true_bytes / kGranule; }
};

TEST_F(MachineManySealedTest, OneIsCopiedAtATimeAndInSteps) {
  SimClient* idle = Parked("a");
  for (int i = 0; i < 3; ++i) Seal(idle, Lease(idle, 256));
  const uint64_t slab_granules =
      state().leases->begin()->second->held->slabs.front().bytes / kGranule;
  for (int i = 0; i < 1000; ++i) world.Advance(milliseconds(10));
  EXPECT_EQ(world.copies_out, std::max<uint64_t>(64 / slab_granules, 1))
      << "128 MiB or a slab, and no copy has ended";
  RunFor(seconds(5));
  EXPECT_EQ(Backed(), 768u);
}

TEST_F(MachineManySealedTest, ARequestStopsTheCopyAndWhatWasCopiedStays) {
  SetTenant("a", {.guarantee = 512});  // borrowers do not evict it
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 512);
  Seal(idle, lease);
  const uint64_t slabs = state().LeaseAt(lease).held->slabs.size();
  ASSERT_GE(slabs, 3u);
  for (int i = 0; i < 1000 && world.copies_out == 0; ++i)
    world.Advance(milliseconds(10));
  ASSERT_EQ(world.copies_out, 1u);
  ASSERT_TRUE(world.StepCopy(/*out=*/true, /*fail=*/false));
  ASSERT_EQ(world.copies_out, 2u) << "the second begins";
  Lease(Active("b"), 3400);
  SimClient* waiter = Active("b");
  ASSERT_EQ(Outcome(waiter, Ask(waiter, 600, {.wait = seconds(1)})), "waits");
  RunCopies();
  EXPECT_EQ(world.copies_out, 2u);
  RunFor(seconds(5));
  EXPECT_EQ(Backed(), 512u);
  EXPECT_EQ(world.copies_out, slabs + 1) << "one was made again";
}

TEST_F(MachineManySealedTest, OneThatDoesNotAnswerHoldsNothingBack) {
  SimClient* stopped = Parked("b");
  Lease(stopped, 4);
  stubborn.insert(stopped);
  Reclaim("b");
  RunFor(seconds(10));
  SimClient* idle = Parked("a");
  Seal(idle, Lease(idle, 4));
  RunFor(seconds(5));
  EXPECT_EQ(Backed(), 4u);
}

TEST_F(MachineManySealedTest, ManySmallLeasesAreCopiedSoon) {
  world.CheckEvery(1000);
  SimClient* idle = Parked("a");
  for (int i = 0; i < 1000; ++i) Seal(idle, Lease(idle, 1));
  RunFor(seconds(6));
  EXPECT_EQ(Backed(), 1000u);
}

TEST_F(MachineManySealedTest, UsersOfALeaseCountAsLooks) {
  world.CheckEvery(1000);
  SimClient* owner = Parked("a");
  constexpr int kLeases = 40, kUsers = 100;
  for (int i = 0; i < kLeases; ++i)
    Lease(owner, 1, {.share_as = absl::StrCat("w", i)});
  for (int user = 0; user < kUsers; ++user) {
    SimClient* client = Parked("a");
    for (int i = 0; i < kLeases; ++i) Attach(client, absl::StrCat("w", i));
    if (user + 1 == kUsers) {
      ASSERT_TRUE(Enter(client));
    }
  }
  size_t last = 0, most = 0;
  for (int i = 0; i < 300; ++i) {
    world.Advance(milliseconds(10));
    const size_t seen = state().backing_pass->seen;
    if (seen > last) most = std::max(most, seen - last);
    last = seen;
  }
  EXPECT_EQ(world.copies_out, 0u) << "one is at work";
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, 400u) << "of 4,000";
}

class MachineHardSealedTest : public MachineManySealedTest {
 protected:
  MachineHardSealedTest() : MachineManySealedTest(Shape(8)) {}
};

TEST_F(MachineHardSealedTest, OneThatCannotBeTakenIsNotCopied) {
  SimClient* first = Parked("a");
  const quota::LeaseId all = Lease(first, 8);
  SimClient* second = Parked("a");
  const quota::LeaseId hard = Lease(second, 4);
  ASSERT_TRUE(IsHard(hard)) << "the host pool had no room";
  Seal(second, hard);
  Release(first, all);
  RunFor(seconds(30));
  EXPECT_LE(world.copies_out * 2, 4u) << "at most once";
}

}  // namespace
}  // namespace gmb::broker
