// Short replays of each trace class: what evicting and pausing are worth must
// not get lost. bench/quota/reclaim_replay prints the long ones.
#include "tests/quota/reclaim_replay.h"

#include <gtest/gtest.h>

#include <iostream>

namespace gmb::quota {
namespace {

class ReclaimReplayTest : public ::testing::TestWithParam<TraceClass> {
 protected:
  ReplayResult Run(const WorldOptions& options) {
    const ReclaimTrace trace =
        MakeReclaimTrace({.trace_class = GetParam(),
                          .seed = 7,
                          .length = std::chrono::minutes(3)});
    const ReplayResult result = Replay(trace, options);
    EXPECT_EQ(result.problem, "");
    EXPECT_EQ(result.uses, trace.uses.size());
    EXPECT_EQ(result.uses, result.served + result.denied);
    std::cout << TraceName(GetParam()) << ": " << result.denied << " of "
              << result.uses << " denied, p50 " << result.wait_p50_ms
              << " ms, p99 " << result.wait_p99_ms << " ms, "
              << result.evictions << " evictions\n";
    return result;
  }
};

TEST_P(ReclaimReplayTest, EvictingServesMoreThanAStaticCut) {
  WorldOptions none;
  none.reclaim = false;
  const ReplayResult without = Run(none);
  const ReplayResult with = Run({});
  EXPECT_EQ(without.evictions, 0u);
  EXPECT_GT(with.evictions, 0u);
  EXPECT_LT(with.denied, without.denied);
  EXPECT_GT(with.active, without.active);
}

TEST_P(ReclaimReplayTest, TheSameSeedEndsTheSame) {
  const ReplayResult one = Run({}), two = Run({});
  EXPECT_EQ(one.wait_p99_ms, two.wait_p99_ms);
  EXPECT_EQ(one.copied_out_bytes, two.copied_out_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Classes, ReclaimReplayTest,
    ::testing::Values(TraceClass::kBursty, TraceClass::kPeriodic,
                      TraceClass::kDiurnal, TraceClass::kAdversarial),
    [](const auto& one) { return std::string(TraceName(one.param)); });

}  // namespace
}  // namespace gmb::quota
