// Clients that stop or die while their memory is taken from them or brought
// back.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/attack/attack_fixture.h"
#include "tests/attack/halt_steps.h"

namespace gmb::attack {
namespace {

class MovesTest : public AttackTest {
 protected:
  void SetUp() override {
    BrokerOptions options;
    options.flags = {"--host-pool=256MiB"};
    Start(Kernel::kNewest, options);
  }

  // One for each step. An operator wants their memory until all are there.
  std::vector<std::unique_ptr<Program>> HaltAtEachStep(
      const std::string& then) {
    std::vector<std::unique_ptr<Program>> clients;
    for (const std::string step : kStepsOfMoves) {
      clients.push_back(
          StartAttacker({"halts_in_moves", "--step", step, "--then", then}));
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      EXPECT_TRUE(Await([&] {
        (void)Gmb({"reclaim", "mallory", "--wait", "100ms"});
        return absl::StrContains(clients[i]->Out(),
                                 absl::StrCat("at ", kStepsOfMoves[i]));
      })) << kStepsOfMoves[i]
          << ": " << clients[i]->Out() << clients[i]->Err();
    }
    return clients;
  }

  void ExpectNothingLeft() {
    ExpectCalmAgain();
    ExpectAllReturned();
    v1::HostPoolStatus host;
    EXPECT_TRUE(Await([&] {
      host = Status().host_pool();
      return host.reserved_bytes() == 0 && host.placed_bytes() == 0;
    })) << host.ShortDebugString();
  }
};

TEST_F(MovesTest, ClientsThatStopAtAnyStepOfOneHoldUpNobody) {
  const auto stopped = HaltAtEachStep("stop");
  for (int i = 0; i < 5; ++i) ExpectOthersServed();
  for (const auto& client : stopped) {
    client->Signal(SIGKILL);
    EXPECT_EQ(client->AwaitExit(), 128 + SIGKILL);
  }
  ExpectNothingLeft();
}

TEST_F(MovesTest, ClientsThatDieAtAnyStepOfOneLeaveNothing) {
  for (int round = 0; round < 3; ++round) {
    for (const auto& client : HaltAtEachStep("kill"))
      EXPECT_EQ(client->AwaitExit(), 128 + SIGKILL) << client->Err();
  }
  ExpectNothingLeft();
}

}  // namespace
}  // namespace gmb::attack
