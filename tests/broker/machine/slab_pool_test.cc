#include "broker/machine/slab_pool.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr quota::TenantId kA{1};
constexpr quota::TenantId kB{2};

SlabPool MakePool(uint64_t capacity, uint64_t max_ready_tails = 0) {
  SlabPool pool({.ready_slab_bytes = 64 * kMiB,
                 .float_target_bytes = 64 * kMiB,
                 .max_ready_slabs = 1000,
                 .max_ready_tails = max_ready_tails,
                 .least_standing_bytes = 2 * kMiB,
                 .reuse_for = std::chrono::seconds(5)});
  pool.SetCapacity(capacity);
  return pool;
}

// Does what the device worker would do with refills until none is due.
void Refill(SlabPool* pool, quota::Instant now, SlabId* next) {
  while (auto refill = pool->NextRefill(now)) {
    uint64_t destroyed = 0;
    for (const Condemned& c : refill->destroy) destroyed += c.slab.bytes;
    pool->Destroyed(destroyed);
    for (const uint64_t bytes : refill->create_bytes) {
      ++*next;
      pool->ReadyCreated({*next, *next, bytes});
    }
  }
}

uint64_t Sum(const Composition& c) {
  return c.granted_bytes + c.returned_bytes + c.ready_bytes + c.float_bytes +
         c.scrubbing_bytes + c.unreturned_bytes + c.missing_bytes;
}

TEST(SlabPool, RefillLeavesTheFloatAndMakesTheRestReady) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  EXPECT_EQ(pool.composition().ready_bytes, 576 * kMiB);
  EXPECT_EQ(pool.composition().float_bytes, 64 * kMiB);
}

TEST(SlabPool, ALeaseIsWholeReadySlabsAndOneTailFromTheFloat) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan plan = pool.Take(kA, 130 * kMiB);
  EXPECT_EQ(plan.taken.size(), 2u);
  EXPECT_EQ(plan.create_bytes, std::vector<uint64_t>{2 * kMiB});
  EXPECT_TRUE(plan.destroy.empty());
  EXPECT_EQ(pool.HandlesFor(130 * kMiB), 3u);
}

TEST(SlabPool, AReturnedSlabServesItsTenantAgainButNeverAnother) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan first = pool.Take(kA, 64 * kMiB);
  ASSERT_EQ(first.taken.size(), 1u);
  const SlabId held = first.taken[0].id;
  pool.Return(kA, first.taken, {0});

  TakePlan of_b = pool.Take(kB, 576 * kMiB);
  for (const Slab& slab : of_b.taken) EXPECT_NE(slab.id, held);
  pool.Return(kB, of_b.taken, {0});

  TakePlan again = pool.Take(kA, 64 * kMiB);
  ASSERT_EQ(again.taken.size(), 1u);
  EXPECT_EQ(again.taken[0].id, held);
}

TEST(SlabPool, AnothersReturnedSlabsAreDestroyedBeforeReadyOnes) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 320 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  // 4 ready and the float are left: the fifth and sixth slab need A's bytes.
  TakePlan of_b = pool.Take(kB, 384 * kMiB);
  EXPECT_EQ(of_b.taken.size(), 4u);
  EXPECT_EQ(of_b.create_bytes.size(), 2u);
  ASSERT_EQ(of_b.destroy.size(), 1u);
  EXPECT_EQ(of_b.destroy[0].last_holder, kA);
}

TEST(SlabPool, ReturnedSlabsAreDestroyedWhenTheirTimeIsOver) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 64 * kMiB);
  const quota::Instant due = quota::Instant{0} + std::chrono::seconds(5);
  pool.Return(kA, of_a.taken, due);
  EXPECT_EQ(pool.NextExpiry(), due);
  EXPECT_FALSE(pool.NextRefill(due + std::chrono::nanoseconds(-1)).has_value());
  auto refill = pool.NextRefill(due);
  ASSERT_TRUE(refill.has_value());
  EXPECT_EQ(refill->destroy.size(), 1u);
  // Its bytes become a ready slab in the same step.
  EXPECT_EQ(refill->create_bytes, std::vector<uint64_t>{64 * kMiB});
}

TEST(SlabPool, TheFirstToExpireIsDestroyedFirst) {
  SlabPool pool = MakePool(640 * kMiB);
  (void)pool.Take(kA, 3 * 64 * kMiB);
  const quota::Instant later = quota::Instant{0} + std::chrono::seconds(5);
  pool.Return(kA, {{1, 1, 64 * kMiB}}, later);
  pool.Return(kA, {{2, 2, 64 * kMiB}}, {0});  // its session is dead
  pool.Return(kA, {{3, 3, 64 * kMiB}}, later);
  auto refill = pool.NextRefill({0});
  ASSERT_TRUE(refill.has_value());
  ASSERT_EQ(refill->destroy.size(), 1u);
  EXPECT_EQ(refill->destroy[0].slab.id, 2u);
}

TEST(SlabPool, SparedSlabsAreWhatTheyWere) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 320 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  const Composition before = pool.composition();
  TakePlan of_b = pool.Take(kB, 512 * kMiB);
  ASSERT_EQ(of_b.destroy.size(), 3u);
  // The first is destroyed, its successor cannot be created, two are spared.
  pool.Destroyed(64 * kMiB);
  pool.Spared({of_b.destroy[1], of_b.destroy[2]}, {0});
  for (const uint64_t bytes : of_b.create_bytes) pool.CreateFailed(bytes);
  pool.Return(kB, of_b.taken, {0});
  const Composition after = pool.composition();
  EXPECT_EQ(Sum(after), 640 * kMiB);
  EXPECT_EQ(after.granted_bytes, 0u);
  EXPECT_EQ(after.returned_bytes,
            before.returned_bytes - 64 * kMiB + of_b.taken.size() * 64 * kMiB);
  // A spared slab still serves its tenant.
  EXPECT_EQ(pool.Take(kA, 128 * kMiB).taken.size(), 2u);
}

// Or a client that keeps what it released would not be found out.
TEST(SlabPool, WhileBytesAreUnreturnedReturnedSlabsAreDestroyedAllTheSame) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 64 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  pool.SetLost({.unreturned_bytes = 2 * kMiB});
  Refill(&pool, quota::Instant{0} + std::chrono::hours(1), &next);
  EXPECT_EQ(pool.composition().returned_bytes, 0u);
}

TEST(SlabPool, WhileBytesAreMissingReturnedSlabsAreKept) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 64 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  pool.SetLost({.missing_bytes = 2 * kMiB});
  const quota::Instant late = quota::Instant{0} + std::chrono::hours(1);
  Refill(&pool, late, &next);
  EXPECT_FALSE(pool.NextExpiry().has_value());
  EXPECT_EQ(pool.composition().returned_bytes, 64 * kMiB);
  pool.SetLost({.missing_bytes = 0});
  Refill(&pool, late, &next);
  EXPECT_EQ(pool.composition().returned_bytes, 0u);
}

// Nobody outside takes what is freed.
TEST(SlabPool, WhatDeletedTenantsKeepIsMissingAndKeepsNoSlabs) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 64 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  pool.SetLost({.orphaned_bytes = 2 * kMiB});
  EXPECT_EQ(pool.composition().missing_bytes, 2 * kMiB);
  EXPECT_EQ(Sum(pool.composition()), 640 * kMiB);
  Refill(&pool, quota::Instant{0} + std::chrono::hours(1), &next);
  EXPECT_EQ(pool.composition().returned_bytes, 0u);
  EXPECT_EQ(Sum(pool.composition()), 640 * kMiB);
}

TEST(SlabPool, OnlySoManyReturnedSlabsAreKept) {
  SlabPool pool({.ready_slab_bytes = 64 * kMiB,
                 .float_target_bytes = 64 * kMiB,
                 .max_returned_slabs = 2});
  pool.SetCapacity(640 * kMiB);
  TakePlan plan = pool.Take(kA, 64 * kMiB);
  TakePlan more = pool.Take(kA, 128 * kMiB);
  EXPECT_TRUE(pool.Return(kA, {{1, 1, 64 * kMiB}}, {0}));
  EXPECT_FALSE(pool.Return(kA, {{2, 2, 64 * kMiB}, {3, 3, 64 * kMiB}}, {0}));
  EXPECT_EQ(pool.composition().returned_bytes, 64 * kMiB);
  EXPECT_TRUE(pool.Return(kA, {{2, 2, 64 * kMiB}}, {0}));
}

TEST(SlabPool, AShortFloatIsRefilledFromAReadySlab) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan tail = pool.Take(kA, 2 * kMiB);
  EXPECT_EQ(tail.create_bytes.size(), 1u);
  EXPECT_EQ(pool.composition().float_bytes, 62 * kMiB);
  Refill(&pool, {0}, &next);
  EXPECT_GE(pool.composition().float_bytes, 64 * kMiB);
}

TEST(SlabPool, AShrinkingPoolGivesReadySlabsUp) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  pool.SetCapacity(320 * kMiB);
  Refill(&pool, {0}, &next);
  EXPECT_EQ(Sum(pool.composition()), 320 * kMiB);
  EXPECT_EQ(pool.composition().float_bytes, 64 * kMiB);
}

TEST(SlabPool, AShrinkingPoolDoesNotWaitForReturnedSlabsToExpire) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 512 * kMiB);
  pool.Return(kA, of_a.taken, quota::Instant{0} + std::chrono::hours(1));
  pool.SetCapacity(320 * kMiB);
  Refill(&pool, {0}, &next);
  EXPECT_EQ(Sum(pool.composition()), 320 * kMiB);
  // The part that fits stays with its tenant.
  EXPECT_EQ(pool.composition().returned_bytes, 320 * kMiB);
}

// In steps; until the device has them back, the pool holds more than it may.
TEST(SlabPool, APoolMadeSmallerHoldsMoreUntilItsSlabsAreDestroyed) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 512 * kMiB);
  pool.Return(kA, of_a.taken, quota::Instant{0} + std::chrono::hours(1));
  EXPECT_FALSE(pool.NextShrink().has_value());
  pool.SetCapacity(320 * kMiB);
  EXPECT_EQ(pool.composition().capacity_bytes, 576 * kMiB);
  EXPECT_EQ(Sum(pool.composition()), 576 * kMiB);
  const auto step = pool.NextShrink();
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->destroy.size(), 4u);  // the ready one, and three of `a`
  EXPECT_TRUE(step->create_bytes.empty());
  EXPECT_FALSE(pool.NextShrink().has_value());
  EXPECT_EQ(pool.composition().capacity_bytes, 576 * kMiB);
  EXPECT_EQ(Sum(pool.composition()), 576 * kMiB);
  pool.Destroyed(256 * kMiB);
  EXPECT_EQ(pool.composition().capacity_bytes, 320 * kMiB);
  EXPECT_EQ(pool.composition().returned_bytes, 320 * kMiB);
}

TEST(SlabPool, WhatIsUnreturnedBeyondTheCapacityIsInTheSum) {
  SlabPool pool = MakePool(640 * kMiB);
  TakePlan all = pool.Take(kA, 640 * kMiB);
  for (const uint64_t bytes : all.create_bytes) pool.Created(bytes);
  pool.SetLost({.unreturned_bytes = 4 * kMiB});
  EXPECT_EQ(pool.composition().granted_bytes, 640 * kMiB);
  EXPECT_EQ(pool.composition().unreturned_bytes, 4 * kMiB);
  EXPECT_EQ(pool.composition().capacity_bytes, 644 * kMiB);
  EXPECT_EQ(Sum(pool.composition()), 644 * kMiB);
  EXPECT_FALSE(pool.NextShrink().has_value()) << "that is no shrink";
}

TEST(SlabPool, WhatIsHandedOverIsNotCountedTwice) {
  SlabPool pool = MakePool(640 * kMiB);
  SlabId next = 0;
  Refill(&pool, {0}, &next);
  TakePlan of_a = pool.Take(kA, 576 * kMiB);
  pool.Return(kA, of_a.taken, {0});
  const TakePlan of_b = pool.Take(kB, 640 * kMiB);
  ASSERT_EQ(of_b.destroy.size(), 9u);
  EXPECT_EQ(pool.composition().capacity_bytes, 640 * kMiB);
  EXPECT_EQ(pool.composition().scrubbing_bytes, 0u);
  EXPECT_EQ(Sum(pool.composition()), 640 * kMiB);
}

TEST(SlabPool, WhereALeaseIsOneSlabNothingIsReadyAndAnySizeIsOne) {
  SlabPool pool({.ready_slab_bytes = 64 * kMiB,
                 .float_target_bytes = 64 * kMiB,
                 .one_slab_a_lease = true});
  pool.SetCapacity(640 * kMiB);
  EXPECT_FALSE(pool.NextRefill({0}).has_value());
  EXPECT_EQ(pool.HandlesFor(500 * kMiB), 1u);
  TakePlan plan = pool.Take(kA, 500 * kMiB);
  EXPECT_EQ(plan.create_bytes, std::vector<uint64_t>{500 * kMiB});
  pool.Return(kA, {{1, 1, 500 * kMiB}}, {0});
  EXPECT_EQ(pool.Take(kA, 500 * kMiB).taken.size(), 1u);
}

TEST(SlabPool, DefaultReadySlabsArePowersOfTwoUpTo1GiB) {
  constexpr uint64_t kGiB = 1024 * kMiB;
  EXPECT_EQ(SlabPool::DefaultOptions(4 * kGiB, 2 * kMiB).ready_slab_bytes,
            128 * kMiB);
  EXPECT_EQ(SlabPool::DefaultOptions(130 * kGiB, 2 * kMiB).ready_slab_bytes,
            kGiB);
  EXPECT_EQ(SlabPool::DefaultOptions(16 * kMiB, 2 * kMiB).ready_slab_bytes,
            2 * kMiB);
}

// A pool that begins small beside others must not need more handles than a
// broker has when it has grown.
TEST(SlabPool, ReadySizeSuitsWhatThePoolMayBecome) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto size = [](uint64_t begins, uint64_t becomes) {
    return SlabPool::DefaultOptions(begins, 2 * kMiB, becomes).ready_slab_bytes;
  };
  EXPECT_EQ(size(100 * kGiB, 134 * kGiB), kGiB);
  EXPECT_EQ(size(4 * kGiB, 134 * kGiB), 256 * kMiB);
  EXPECT_EQ(size(4 * kGiB, 8 * kGiB), 128 * kMiB);
  EXPECT_EQ(size(16 * kMiB, 134 * kGiB), 256 * kMiB);
}

// Random leases of three tenants: the parts always add up to the pool, no slab
// is in two places, and none changes tenant.
class RandomLeases : public testing::TestWithParam<int> {};

TEST_P(RandomLeases, ThePartsAddUpAndNoSlabChangesTenant) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  constexpr uint64_t kCapacity = 1280 * kMiB;
  SlabPool pool = MakePool(kCapacity, GetParam() % 2 == 0 ? 0 : 40);
  SlabId next = 0;
  struct Held {
    quota::TenantId tenant;
    std::vector<Slab> slabs;
    uint64_t bytes;
  };
  std::vector<Held> leases;
  std::map<SlabId, quota::TenantId> holder;
  uint64_t granted = 0;
  quota::Instant now{0};
  for (int step = 0; step < 2000; ++step) {
    now = now + std::chrono::milliseconds(random() % 700);
    const uint64_t bytes = (1 + random() % 150) * 2 * kMiB;
    if (random() % 2 == 0 && granted + bytes <= kCapacity) {
      const quota::TenantId tenant{1 + random() % 3};
      TakePlan plan = pool.Take(tenant, bytes);
      uint64_t destroyed = 0;
      for (const Condemned& c : plan.destroy) destroyed += c.slab.bytes;
      pool.Destroyed(destroyed);
      Held held{tenant, plan.taken, bytes};
      for (const uint64_t size : plan.create_bytes) {
        held.slabs.push_back({++next, next, size});
        ASSERT_EQ(Sum(pool.composition()), kCapacity) << "step " << step;
        pool.Created(size);
      }
      ASSERT_EQ(held.slabs.size(), pool.HandlesFor(bytes));
      uint64_t sum = 0;
      for (const Slab& slab : held.slabs) {
        sum += slab.bytes;
        const auto [it, fresh] = holder.try_emplace(slab.id, tenant);
        ASSERT_TRUE(fresh || it->second == tenant) << "slab changed tenant";
      }
      ASSERT_EQ(sum, bytes);
      granted += bytes;
      leases.push_back(std::move(held));
    } else if (!leases.empty()) {
      const size_t i = random() % leases.size();
      granted -= leases[i].bytes;
      if (random() % 4 == 0) {
        (void)pool.Condemn(leases[i].tenant, leases[i].slabs);
        pool.Destroyed(leases[i].bytes);
      } else {
        pool.Return(leases[i].tenant, leases[i].slabs,
                    now + std::chrono::seconds(random() % 6));
      }
      leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (random() % 3 == 0) Refill(&pool, now, &next);
    ASSERT_EQ(Sum(pool.composition()), kCapacity) << "step " << step;
    ASSERT_EQ(pool.composition().granted_bytes, granted);
    std::set<SlabId> seen;
    for (const Held& lease : leases) {
      for (const Slab& slab : lease.slabs)
        ASSERT_TRUE(seen.insert(slab.id).second);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLeases, testing::Range(1, 21));

}  // namespace
}  // namespace gmb::broker
