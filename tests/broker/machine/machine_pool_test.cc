// A pool that began beside others who held memory, such as the clients of a
// broker that was killed.
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr uint64_t kWanted = 64;  // granules; 8 more are headroom
constexpr uint64_t kOthers = 16;

class MachinePoolTest : public MachineFixture {
 protected:
  MachinePoolTest()
      : MachineFixture({.granules = kWanted,
                        .host_granules = 0,
                        .others_granules = kOthers}) {
    SetTenant("a");
    RunFor(seconds(1));
  }
  void OthersHold(uint64_t granules) {
    world.device(kPool).SetOutside(granules * kGranule);
  }
  [[nodiscard]] uint64_t Target() const {
    return InPool().target_bytes / kGranule;
  }
  // Whether `a` is granted so much of it at once.
  bool IsGranted(SimClient* client, uint64_t granules) {
    const uint64_t id = Ask(client, granules);
    RunDevice();
    return Outcome(client, id) == "granted";
  }
};

TEST_F(MachinePoolTest, ItGrowsToWhatWasAskedForWhenTheOthersHaveEnded) {
  ASSERT_EQ(Target(), kWanted - kOthers);
  SimClient* client = Connect("a");
  EXPECT_FALSE(IsGranted(client, kWanted));
  OthersHold(0);
  RunFor(seconds(4));
  EXPECT_EQ(Target(), kWanted - kOthers) << "it may be free for a moment only";
  RunFor(seconds(4));
  EXPECT_EQ(Target(), kWanted);
  EXPECT_EQ(HeadroomLeft(), 8 * kGranule);
  EXPECT_EQ(Events("pool_grown").size(), 1u);
  // Its tenant's share of it grows along.
  EXPECT_TRUE(IsGranted(client, kWanted));
}

TEST_F(MachinePoolTest, ItGrowsByWhatStayedFreeAllTheTime) {
  OthersHold(4);
  RunFor(seconds(3));
  OthersHold(kOthers);
  RunFor(seconds(10));
  EXPECT_EQ(Target(), kWanted - kOthers) << "it was taken again";
  OthersHold(4);
  RunFor(seconds(2));
  OthersHold(10);
  RunFor(seconds(2));
  OthersHold(4);
  RunFor(seconds(3));
  EXPECT_EQ(Target(), kWanted - 10);
  RunFor(seconds(8));
  EXPECT_EQ(Target(), kWanted - 4) << "and by the rest";
}

// Memory taken after that is taken from the pool, past the broker.
TEST_F(MachinePoolTest, WhatOthersTakeAgainIsOutside) {
  OthersHold(0);
  RunFor(seconds(8));
  ASSERT_EQ(Target(), kWanted);
  OthersHold(12);
  RunFor(seconds(2));
  EXPECT_EQ(InPool().missing_bytes, 4 * kGranule);
  OthersHold(0);
  RunFor(seconds(10));
  EXPECT_EQ(Target(), kWanted) << "it is the same memory";
  EXPECT_EQ(HeadroomLeft(), 8 * kGranule);
}

// A process that is done and has not let go yet, and lets go later.
TEST_F(MachinePoolTest, WhatIsUnreturnedIsNoGrowth) {
  SimClient* client = Connect("a");
  ASSERT_TRUE(IsGranted(client, 20));
  const SimLease held = client->leases.begin()->second;
  world.Do("close", [&](Turn& turn) {
    world.machine().CloseSession(client->session, "it hung up", turn);
  });
  RunFor(seconds(10));
  ASSERT_GT(InPool().unreturned_bytes, 0u);
  OthersHold(0);
  RunFor(seconds(10));
  world.HoldSlabs(held, false);
  RunFor(seconds(10));
  EXPECT_LE(Target(), kWanted);
  EXPECT_EQ(HeadroomLeft(), 8 * kGranule);
}

TEST_F(MachinePoolTest, AnOperatorsSizeStaysAndMayBeRaisedToWhatIsFreeNow) {
  EXPECT_FALSE(Resize(kWanted + 8).ok());
  EXPECT_TRUE(Resize(20).ok());
  OthersHold(0);
  RunFor(seconds(8));
  EXPECT_EQ(Target(), 20u);
  EXPECT_TRUE(Resize(kWanted + 8).ok());
  EXPECT_EQ(Target(), kWanted + 8);
}

}  // namespace
}  // namespace gmb::broker
