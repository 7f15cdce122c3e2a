// Random programs for the interpreter. GMB_QUOTA_SEED sets the first seed,
// GMB_QUOTA_SEEDS how many: a failure prints the seed to repeat it with.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <vector>

#include "tests/quota/from_environment.h"
#include "tests/quota/interpreter.h"
#include "tests/sanitized.h"

namespace gmb::quota {
namespace {

constexpr size_t kProgramBytes = 6000;

std::vector<uint8_t> RandomProgram(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> program(kProgramBytes);
  for (uint8_t& byte : program) byte = static_cast<uint8_t>(random());
  return program;
}

TEST(QuotaPropertyTest,
     EveryInvariantHoldsAfterEveryStepAndTheReferenceModelAgrees) {
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  const uint64_t count =
      FromEnvironment("GMB_QUOTA_SEEDS", FewerIfSanitized(40));
  InterpreterResult total;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const InterpreterResult result = Interpret(RandomProgram(seed));
    ASSERT_EQ(result.problem, "")
        << "repeat with GMB_QUOTA_SEED=" << seed << " GMB_QUOTA_SEEDS=1";
    total.events += result.events;
    total.granted += result.granted;
    total.granted_after_waiting += result.granted_after_waiting;
    total.granted_softened += result.granted_softened;
    for (const auto& [reason, n] : result.denied) total.denied[reason] += n;
    total.pending += result.pending;
    total.restored += result.restored;
    total.restored_after_waiting += result.restored_after_waiting;
    total.restored_in_part += result.restored_in_part;
    total.sent_again += result.sent_again;
    total.denied_pausing += result.denied_pausing;
    total.denied_claimed += result.denied_claimed;
  }
  std::cout << total.events << " events: " << total.granted << " granted, "
            << total.granted_after_waiting << " of them after waiting, "
            << total.granted_softened << " when one became soft, "
            << total.pending << " pending, " << total.restored
            << " restored at once, " << total.restored_after_waiting
            << " after waiting, " << total.restored_in_part << " in part, "
            << total.sent_again << " sent again, " << total.denied_pausing
            << " denied for a pause, " << total.denied_claimed
            << " for another's claim;";
  for (const auto& [reason, n] : total.denied)
    std::cout << " " << ReasonName(reason) << " " << n;
  std::cout << "\n";
  // The programs are worth something only if they reach every kind of outcome.
  if (count < 10) return;
  EXPECT_GT(total.granted_after_waiting, 10 * count);
  if (count >= 40) {  // it is rare
    EXPECT_GT(total.granted_softened, 0u);
  }
  EXPECT_GT(total.pending, count);
  EXPECT_GT(total.restored, 5 * count);
  EXPECT_GT(total.restored_after_waiting, count);
  EXPECT_GT(total.sent_again, count);
  EXPECT_GT(total.denied_pausing, count);
  EXPECT_GT(total.denied_claimed, count / 2);
  for (const Reason reason :
       {Reason::kBadRequest, Reason::kNoSuchTenant, Reason::kNoSuchPool,
        Reason::kTenantLimit, Reason::kTooManyHandles, Reason::kPoolExhausted,
        Reason::kOvercommitted, Reason::kDraining, Reason::kCancelled}) {
    EXPECT_GT(total.denied[reason], count) << ReasonName(reason);
  }
}

TEST(QuotaPropertyTest, AnEmptyProgramLeavesNothing) {
  EXPECT_EQ(Interpret({}).problem, "");
}

}  // namespace
}  // namespace gmb::quota
