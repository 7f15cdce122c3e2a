// Fds of every odd kind are as welcome as any: not at all, and they hold up
// nobody.
#include "tests/attack/attack_fixture.h"

namespace gmb::attack {
namespace {

constexpr int kImpossible = 3;

class OddFdsTest : public AttackTest,
                   public ::testing::WithParamInterface<Kernel> {
 protected:
  void SetUp() override { Start(GetParam()); }
};

TEST_P(OddFdsTest, OfEveryKindAndAtEveryMomentHoldUpNobody) {
  const auto attacker = StartAttacker({"odd_fds"});
  ServeDuring(*attacker, 1);
  EXPECT_TRUE(attacker->AwaitOut("all_kinds")) << attacker->Out();
  Stop(*attacker);
  ExpectCalmAgain();
}

TEST_P(OddFdsTest, CyclesInFlightHoldUpNobody) {
  ExpectHarmless({"inflight_cycles"});
}

// Each would cost the broker a thread.
TEST_P(OddFdsTest, FilesWhoseServerDoesNotAnswerHoldUpNobodyElse) {
  const auto attacker = StartAttacker({"fuse_fds"});
  ASSERT_TRUE(attacker->AwaitOut("attacking") ||
              attacker->AwaitExit() == kImpossible)
      << attacker->Err();
  if (!attacker->IsRunning()) GTEST_SKIP() << attacker->Err();
  ServeDuring(*attacker, 4);
  Stop(*attacker);
  ExpectCalmAgain();
}

INSTANTIATE_TEST_SUITE_P(Kernels, OddFdsTest,
                         ::testing::Values(Kernel::kNewest,
                                           Kernel::kNoPassRights),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gmb::attack
