// The simulated world beside what was measured on GPUs (bench/results): times
// of whole moves, which the world makes of what their parts cost. Medians; the
// recorded runs have too few rounds for a 99th percentile.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <ostream>

#include "tests/quota/reclaim_world.h"

namespace gmb::quota {
namespace {

using std::chrono::seconds;

constexpr PoolId kOnly{1};
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Memory of one session, all of which another tenant takes, and its way back.
struct Measured {
  uint64_t lease_bytes;
  uint64_t leases;
  double copy_gb_per_second;  // plain, in the same run
  double taken_ms;  // from the other's request to its mapping; 0: not measured
  double back_ms;   // until the owner is in
  Contents contents = Contents::kPreserve;
};
void PrintTo(const Measured& one, std::ostream* out) {
  *out << one.leases << " leases of " << one.lease_bytes / kMiB << " MiB";
}

class ReclaimCostsTest : public ::testing::TestWithParam<Measured> {
 protected:
  static WorldOptions Costs() {
    const Measured& one = GetParam();
    WorldOptions options;
    options.costs.copy_bytes_per_second =
        static_cast<uint64_t>(one.copy_gb_per_second * 1e9);
    options.costs.creates_first = true;  // as it was then
    options.planner.residency_restores = 0;
    return options;
  }
  double MsSince(Instant began) const {
    return static_cast<double>((world.now() - began).count()) * 1e-6;
  }

  const uint64_t bytes = GetParam().lease_bytes * GetParam().leases;
  ReclaimWorld world{Costs()};
};

TEST_P(ReclaimCostsTest, MovesTakeWhatWasMeasured) {
  world.AddPool(kOnly, bytes, 2 * kMiB);
  world.AddTenant(TenantId{1},
                  {.quota = {Amount::Bytes(0), Amount::Fraction(1), 1}});
  // Within its guarantee it takes lease after lease, as many as it lacks.
  world.AddTenant(TenantId{2},
                  {.quota = {Amount::Bytes(bytes), Amount::Fraction(1), 1}});
  const SessionId owner = world.AddSession(TenantId{1});
  const SessionId other = world.AddSession(TenantId{2});
  for (uint64_t i = 0; i < GetParam().leases; ++i) {
    world.Acquire(owner, kOnly, GetParam().lease_bytes, false,
                  GetParam().contents, seconds(60), {});
  }
  world.RunUntil(world.now() + seconds(60));
  Instant began = world.now();
  double taken_ms = 0;
  LeaseId taken;
  const auto on_taken = [&](bool served) {
    ASSERT_TRUE(served);
    taken_ms = MsSince(began);
    taken = world.granted();
  };
  world.At(began, [&] {
    world.Acquire(other, kOnly, bytes, true, Contents::kResident, seconds(50),
                  on_taken);
  });
  world.RunUntil(world.now() + seconds(60));
  if (GetParam().taken_ms > 0) {
    EXPECT_NEAR(taken_ms, GetParam().taken_ms, 0.15 * GetParam().taken_ms);
  }
  world.At(world.now(), [&] { world.Release(taken); });
  world.RunUntil(world.now() + seconds(60));
  began = world.now();
  double back_ms = 0;
  const auto on_back = [&](bool served) {
    ASSERT_TRUE(served);
    back_ms = MsSince(began);
  };
  world.At(began, [&] { world.Work(owner, seconds(1), seconds(50), on_back); });
  world.RunUntil(world.now() + seconds(60));
  std::cout << ::testing::PrintToString(GetParam()) << ": taken in " << taken_ms
            << " ms, back in " << back_ms << " ms\n";
  if (GetParam().back_ms > 0) {
    EXPECT_NEAR(back_ms, GetParam().back_ms, 0.15 * GetParam().back_ms);
  }
}

// bench/results/h200/reclaim.txt, df78e80.
INSTANTIATE_TEST_SUITE_P(
    Reclaim, ReclaimCostsTest,
    ::testing::Values(
        Measured{8 * kGiB, 1, 54.5, 173.3, 159.2},
        Measured{20 * kMiB, 409, 54.0, 209.8, 176.2},
        Measured{256 * kMiB, 224, 55.0, 1546.0, 1328.3},
        // Backed; as here, where nothing is kept, nothing is copied.
        Measured{8 * kGiB, 1, 54.5, 20.6, 0, Contents::kDiscard}));
// bench/results/h100/run_gate.txt, aac3a85.
INSTANTIATE_TEST_SUITE_P(
    Wakes, ReclaimCostsTest,
    ::testing::Values(Measured{64 * kMiB, 32, 55.0, 0, 46.5},
                      Measured{64 * kMiB, 128, 54.8, 0, 181.8}));

}  // namespace
}  // namespace gmb::quota
