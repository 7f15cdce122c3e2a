// A trace of 1,000 tenants on 100 pools, for a few fixed seeds.
#include "tests/quota/simulator.h"

#include <gtest/gtest.h>

#include <iostream>

namespace gmb::quota {
namespace {

class SimulatorTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimulatorTest, AThousandTenantsOnAHundredPoolsLeaveNothingBehind) {
  const TraceOptions options{.seed = GetParam()};
  const Trace trace = MakeTrace(options);
  Engine engine(EngineOptions{.max_handles = 1 << 20});
  const SimulatorResult result = Simulate(trace, engine);
  std::cout << result.Summary() << "\n";

  uint64_t answered = result.granted_at_once + result.granted_after_waiting;
  for (const auto& [reason, count] : result.denied) answered += count;
  EXPECT_EQ(answered, trace.requests.size());
  EXPECT_EQ(engine.Pools().size(), options.pools);
  EXPECT_EQ(engine.Tenants().size(), options.tenants);

  // All leases were released and all waits are over.
  EXPECT_EQ(engine.leases(), 0u);
  EXPECT_EQ(engine.waiting(), 0u);
  EXPECT_EQ(engine.handles(), 0u);
  for (const PoolId id : engine.Pools()) {
    const PoolView pool = *engine.Pool(id);
    EXPECT_EQ(pool.charged_bytes, 0u);
    EXPECT_EQ(pool.waiting_bytes, 0u);
    EXPECT_EQ(pool.committed_bytes, pool.guaranteed_bytes);
    EXPECT_LE(pool.guaranteed_bytes, pool.target_bytes);
  }

  // The trace is worth replaying: pools are full at times, and nobody owns
  // them.
  EXPECT_GT(result.granted_at_once, result.granted_after_waiting);
  EXPECT_GT(result.granted_after_waiting, trace.requests.size() / 100);
  EXPECT_GT(result.denied.at(Reason::kPoolExhausted), 0u);
  EXPECT_GT(result.quotas_pending, 0u);
  EXPECT_GT(result.mean_utilisation, 0.3);
}

TEST_P(SimulatorTest, TheSameTraceEndsTheSame) {
  const TraceOptions options{
      .seed = GetParam(), .pools = 10, .tenants = 100, .requests = 3000};
  Engine one, two;
  SimulatorResult first = Simulate(MakeTrace(options), one);
  SimulatorResult second = Simulate(MakeTrace(options), two);
  first.mean_decision_ns = second.mean_decision_ns = 0;  // real time
  EXPECT_EQ(first.Summary(), second.Summary());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulatorTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace gmb::quota
