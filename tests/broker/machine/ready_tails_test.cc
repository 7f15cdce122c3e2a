// Slabs of the sizes that are asked for are kept ready.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "broker/machine/size_demand.h"
#include "broker/machine/slab_pool.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr uint64_t kMiB = 1 << 20;
constexpr quota::TenantId kA{1};
constexpr quota::TenantId kB{2};

// A pool of 640 MiB with ready slabs of 64 MiB, and a worker that does at once
// what it is told.
class ReadyTailsTest : public testing::Test {
 protected:
  explicit ReadyTailsTest(uint64_t most_tails = 512,
                          uint64_t least_standing = 0)
      : pool({.ready_slab_bytes = 64 * kMiB,
              .float_target_bytes = 64 * kMiB,
              .max_ready_tails = most_tails,
              .least_standing_bytes = least_standing,
              .reuse_for = seconds(5)}) {
    pool.SetCapacity(640 * kMiB);
    Refill();
  }

  void Refill() {
    for (int steps = 0; auto refill = pool.NextRefill(now); ++steps) {
      ASSERT_LT(steps, 1000) << "it goes round in circles";
      for (const Condemned& c : refill->destroy) pool.Destroyed(c.slab.bytes);
      for (const uint64_t bytes : refill->create_bytes) {
        ++next;
        pool.ReadyCreated({next, next, bytes});
      }
      ASSERT_EQ(Sum(), 640 * kMiB);
    }
  }
  void RefillWithoutASum() {
    while (auto refill = pool.NextRefill(now)) {
      for (const Condemned& c : refill->destroy) pool.Destroyed(c.slab.bytes);
      for (const uint64_t bytes : refill->create_bytes) {
        ++next;
        pool.ReadyCreated({next, next, bytes});
      }
    }
  }
  // Its slabs once they are made.
  std::vector<Slab> Take(quota::TenantId tenant, uint64_t bytes) {
    TakePlan plan = pool.Take(tenant, bytes);
    made = plan.create_bytes.size();
    for (const Condemned& c : plan.destroy) pool.Destroyed(c.slab.bytes);
    for (const uint64_t size : plan.create_bytes) {
      pool.Created(size);
      ++next;
      plan.taken.push_back({next, next, size});
    }
    return plan.taken;
  }
  // So many leases of that size are there at once, and then no more.
  void Use(quota::TenantId tenant, size_t leases, uint64_t bytes) {
    std::vector<std::vector<Slab>> slabs;
    for (size_t i = 0; i < leases; ++i) slabs.push_back(Take(tenant, bytes));
    for (const std::vector<Slab>& one : slabs)
      ASSERT_TRUE(pool.Return(tenant, one, now));
    Refill();
  }
  // How many of so many leases of that size find all of their slabs there.
  size_t Ready(size_t leases, uint64_t bytes) {
    SlabPool before = pool;
    size_t ready = 0;
    for (size_t i = 0; i < leases; ++i)
      ready += before.Take(kB, bytes).create_bytes.empty() ? 1 : 0;
    return ready;
  }
  [[nodiscard]] uint64_t Sum() const {
    const Composition c = pool.composition();
    return c.granted_bytes + c.returned_bytes + c.ready_bytes + c.float_bytes +
           c.scrubbing_bytes + c.unreturned_bytes + c.missing_bytes;
  }

  quota::Instant now = quota::Instant{0} + seconds(1);
  SlabPool pool;
  SlabId next = 0;
  size_t made = 0;  // of the last that were taken
};

TEST_F(ReadyTailsTest, WhatWasAskedForIsReadyTheNextTime) {
  EXPECT_EQ(Ready(8, 16 * kMiB), 0u);
  Use(kA, 8, 16 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 8u);
  EXPECT_EQ(Ready(8, 14 * kMiB), 0u) << "nobody asked for that";
  EXPECT_GE(pool.composition().float_bytes, 64 * kMiB);
  EXPECT_EQ(Take(kB, 16 * kMiB).size(), 1u);
  EXPECT_EQ(made, 0u);
}

TEST_F(ReadyTailsTest, NoMoreThanTheirShareOfWhatIsAskedFor) {
  // 448 of 576 MiB are asked for whole, and 128 MiB are left besides the float.
  (void)Take(kB, 448 * kMiB);
  Use(kA, 8, 16 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 1u);
}

// For a few a whole slab is not made smaller.
TEST_F(ReadyTailsTest, WhatTheFloatCanGiveAtOnceIsNotMadeReady) {
  Use(kA, 1, 16 * kMiB);
  EXPECT_EQ(Ready(1, 16 * kMiB), 0u);
  EXPECT_EQ(Ready(9, 64 * kMiB), 9u);
}

TEST_F(ReadyTailsTest, ALargeRequestGetsTheirBytes) {
  Use(kA, 8, 16 * kMiB);
  const std::vector<Slab> all = Take(kB, 640 * kMiB);
  EXPECT_EQ(all.size(), 10u);
  EXPECT_EQ(Sum(), 640 * kMiB);
  EXPECT_EQ(pool.composition().ready_bytes, 0u);
}

TEST_F(ReadyTailsTest, AfterTenMinutesWithoutARequestTheyAreWholeSlabsAgain) {
  Use(kA, 8, 16 * kMiB);
  now = now + minutes(4);
  Refill();
  EXPECT_EQ(Ready(8, 16 * kMiB), 8u);
  now = now + minutes(7);
  Refill();
  EXPECT_EQ(Ready(8, 16 * kMiB), 0u);
  EXPECT_EQ(Ready(9, 64 * kMiB), 9u);
}

TEST_F(ReadyTailsTest, WhileBytesAreMissingNoneIsGivenUpWithoutNeed) {
  Use(kA, 8, 16 * kMiB);
  pool.SetLost({.missing_bytes = 2 * kMiB});
  now = now + minutes(11);
  Refill();
  EXPECT_EQ(Ready(8, 16 * kMiB), 8u);
}

class FewReadyTailsTest : public ReadyTailsTest {
 protected:
  FewReadyTailsTest() : ReadyTailsTest(/*most_tails=*/4) {}
};

TEST_F(FewReadyTailsTest, OnlySoManyAreKept) {
  Use(kA, 8, 16 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 4u);
}

TEST_F(FewReadyTailsTest, AsManyOfAllSizesAsTheDemandGoesFromOneToAnother) {
  Use(kA, 4, 16 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 4u);
  Use(kA, 4, 20 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 4u) << "each is wanted as much as the other";
  EXPECT_EQ(Ready(8, 20 * kMiB), 0u);
  Use(kA, 8, 20 * kMiB);
  EXPECT_EQ(Ready(8, 16 * kMiB), 2u);
  EXPECT_EQ(Ready(8, 20 * kMiB), 2u);
}

class StandingTailsTest : public ReadyTailsTest {
 protected:
  StandingTailsTest() : ReadyTailsTest(/*most_tails=*/512, 2 * kMiB) {}
};

TEST_F(StandingTailsTest, SizesThatDoubleAreReadyBeforeAnybodyAsks) {
  for (const uint64_t mib : {2, 4}) EXPECT_EQ(Ready(9, mib * kMiB), 2u) << mib;
  for (const uint64_t mib : {8, 16, 32})
    EXPECT_EQ(Ready(9, mib * kMiB), 1u) << mib;
  for (const uint64_t mib : {6, 20}) EXPECT_EQ(Ready(9, mib * kMiB), 0u) << mib;
  EXPECT_EQ(Ready(9, 64 * kMiB), 7u) << "the rest is whole, but for the float";
}

TEST_F(StandingTailsTest, OneThatIsTakenIsMadeAgain) {
  for (int i = 1; i <= 3; ++i) {
    (void)Take(kA, 32 * kMiB);
    EXPECT_EQ(made, 0u) << i;
    Refill();
    EXPECT_GE(Ready(9, 32 * kMiB), 1u) << i;
  }
}

// The float has no more than its target.
TEST_F(StandingTailsTest, AWholeSlabIsGivenUpForASmallOne) {
  const uint64_t spare = pool.composition().float_bytes - 64 * kMiB;
  pool.SetCapacity(640 * kMiB - spare);
  (void)Take(kA, 2 * kMiB);
  RefillWithoutASum();
  EXPECT_EQ(Ready(9, 2 * kMiB), 2u);
  EXPECT_EQ(Ready(9, 64 * kMiB), 6u);
}

class FewStandingTailsTest : public ReadyTailsTest {
 protected:
  FewStandingTailsTest() : ReadyTailsTest(/*most_tails=*/10, 2 * kMiB) {}
};

// One tenant's odd sizes do not take their place: seven of the ten are theirs.
TEST_F(FewStandingTailsTest, TheyStandWhateverElseIsAskedFor) {
  (void)Take(kB, 32 * kMiB);
  for (int i = 0; i < 10; ++i) Use(kA, 10, 6 * kMiB);
  EXPECT_LE(Ready(9, 6 * kMiB), 3u);
  EXPECT_EQ(Ready(9, 32 * kMiB), 1u);
  EXPECT_EQ(Ready(9, 4 * kMiB), 2u);
}

// Unreturned bytes are not left.
TEST(StandingTailsInDebtTest, NoneIsMadeWhereNearlyAllIsLost) {
  SlabPool pool({.ready_slab_bytes = 64 * kMiB,
                 .float_target_bytes = 64 * kMiB,
                 .max_ready_tails = 512,
                 .least_standing_bytes = 2 * kMiB});
  pool.SetCapacity(640 * kMiB);
  pool.SetLost({.unreturned_bytes = 384 * kMiB});
  SlabId next = 0;
  while (auto refill = pool.NextRefill(quota::Instant{0} + seconds(1))) {
    for (const uint64_t bytes : refill->create_bytes) {
      EXPECT_EQ(bytes, 64 * kMiB);
      ++next;
      pool.ReadyCreated({next, next, bytes});
    }
  }
  EXPECT_EQ(next, 3u);
}

// Of 640 MiB, with 64 MiB of float, less than four whole slabs are left.
TEST_F(StandingTailsTest, NoneIsMadeAgainWhereNearlyAllIsLeased) {
  (void)Take(kA, 320 * kMiB);
  (void)Take(kA, 32 * kMiB);
  EXPECT_EQ(made, 0u);
  Refill();
  EXPECT_EQ(Ready(9, 32 * kMiB), 0u);
  EXPECT_EQ(Ready(9, 16 * kMiB), 1u) << "the others stay until they are needed";
  EXPECT_EQ(Take(kB, 288 * kMiB).size(), 5u);
  EXPECT_EQ(Sum(), 640 * kMiB);
  EXPECT_EQ(pool.composition().ready_bytes, 0u);
}

TEST_F(StandingTailsTest, TheyStandForAsLongAsNobodyAsks) {
  now = now + minutes(30);
  Refill();
  EXPECT_EQ(Ready(9, 32 * kMiB), 1u);
  EXPECT_EQ(pool.NextRefill(now), std::nullopt);
}

// The device's worker is soon free again.
TEST_F(ReadyTailsTest, AStepMakesNoMoreThanTheFloat) {
  std::vector<std::vector<Slab>> leases;
  for (int i = 0; i < 8; ++i) leases.push_back(Take(kA, 24 * kMiB));
  for (const std::vector<Slab>& lease : leases) {
    for (const Condemned& c : pool.Condemn(kA, lease))
      pool.Destroyed(c.slab.bytes);
  }
  size_t most = 0;
  while (auto refill = pool.NextRefill(now)) {
    for (const Condemned& c : refill->destroy) pool.Destroyed(c.slab.bytes);
    for (const uint64_t bytes : refill->create_bytes) {
      ++next;
      pool.ReadyCreated({next, next, bytes});
    }
    most = std::max(most, refill->create_bytes.size());
  }
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(Ready(8, 24 * kMiB), 8u);
}

constexpr uint64_t kWhole = 5000;

TEST(SizeDemandTest, CountsAFewSizesOnly) {
  SizeDemand demand(kWhole);
  for (uint64_t size = 1; size <= 1000; ++size) demand.Note(size);
  EXPECT_EQ(demand.Sizes().size(), SizeDemand::kMostSizes);
  EXPECT_EQ(demand.slabs(), SizeDemand::kMostSizes);
  uint64_t bytes = 0;
  for (const uint64_t size : demand.Sizes()) bytes += size;
  EXPECT_EQ(demand.bytes(), bytes);
}

TEST(SizeDemandTest, WhatIsAskedForAgainCountsWhateverElseIs) {
  SizeDemand demand(kWhole);
  for (uint64_t size = 1; size <= 1000; ++size) demand.Note(size);
  for (int i = 0; i < 2; ++i) demand.Note(2000);
  for (uint64_t size = 1; size <= 1000; ++size) demand.Note(size);
  EXPECT_EQ(demand.SlabsOf(2000), 2u);
}

TEST(SizeDemandTest, WholeSlabsAlwaysCount) {
  SizeDemand demand(kWhole);
  for (int i = 0; i < 2; ++i) {
    for (uint64_t size = 1; size <= SizeDemand::kMostSizes; ++size)
      demand.Note(size);
  }
  demand.Note(2000);
  EXPECT_EQ(demand.SlabsOf(2000), 0u) << "all others were asked for twice";
  demand.Note(kWhole);
  EXPECT_EQ(demand.SlabsOf(kWhole), 1u);
  EXPECT_EQ(demand.slabs(), 2 * SizeDemand::kMostSizes + 1);
  EXPECT_EQ(demand.SlabsOf(1), 2u) << "in nobody's place";
}

TEST(SizeDemandTest, ForgetsWhatIsTenMinutesOld) {
  SizeDemand demand(kWhole);
  const quota::Instant start{1};
  demand.Pass(start);
  demand.Note(4);
  demand.Pass(start + minutes(5));
  EXPECT_EQ(demand.SlabsOf(4), 1u);
  EXPECT_EQ(demand.bytes(), 4u);
  demand.Pass(start + minutes(9));
  EXPECT_EQ(demand.SlabsOf(4), 1u);
  demand.Pass(start + minutes(10));
  EXPECT_EQ(demand.SlabsOf(4), 0u);
  EXPECT_TRUE(demand.Sizes().empty());
}

// A node that was idle for long has forgotten both periods at once.
TEST(SizeDemandTest, AfterALongRestNothingOfBeforeCounts) {
  SizeDemand demand(kWhole);
  const quota::Instant start{1};
  demand.Pass(start);
  demand.Note(4);
  demand.Note(kWhole);
  demand.Pass(start + minutes(30));
  EXPECT_EQ(demand.SlabsOf(4), 0u);
  EXPECT_EQ(demand.SlabsOf(kWhole), 0u);
  EXPECT_EQ(demand.bytes(), 0u);
  demand.Note(8);
  EXPECT_EQ(demand.slabs(), 1u);
}

}  // namespace
}  // namespace gmb::broker
