// A pool that began beside others who held memory, such as the clients of a
// broker that was killed.
#include <algorithm>
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr uint64_t kGranule = SimWorld::kGranule;
constexpr uint64_t kPool = 64;  // granules, as below; 8 more are headroom
constexpr uint64_t kOthers = 16;

class MachinePoolTest : public testing::Test {
 protected:
  MachinePoolTest()
      : world_({}, /*pools=*/1, kPool * kGranule, 0, kOthers * kGranule) {
    TenantPolicy policy;
    policy.name = "a";
    policy.quota = {quota::Amount::Bytes(0), quota::Amount::Fraction(1), 1};
    world_.Do("set tenant", [&](Turn& turn) {
      ASSERT_TRUE(world_.machine().operators().SetTenant(policy, turn).ok());
    });
    RunFor(seconds(1));
  }
  void RunFor(quota::Nanoseconds time) {
    const quota::Instant end = world_.now() + time;
    while (world_.now() < end) {
      const quota::Instant due =
          std::max(world_.machine().NextDue(world_.now()),
                   world_.now() + std::chrono::milliseconds(1));
      world_.Advance(std::min(end, due) - world_.now());
      while (world_.StepDevice(kId)) {
      }
    }
  }
  void OthersHold(uint64_t granules) {
    world_.device(kId).SetOutside(granules * kGranule);
  }
  [[nodiscard]] uint64_t Target() const {
    return world_.state().engine->Pool(kId)->target_bytes / kGranule;
  }
  [[nodiscard]] uint64_t Outside() const {
    return world_.state().PoolAt(kId).device->reading.outside_bytes / kGranule;
  }
  // What `a` is granted of it at once.
  bool IsGranted(SimClient* client, uint64_t granules) {
    v1::ClientMessage message;
    message.set_request_id(++client->last_request);
    message.mutable_acquire()->set_bytes(granules * kGranule);
    client->acquires[client->last_request] = message.acquire();
    const uint64_t before = client->granted;
    world_.Send(client, message);
    while (world_.StepDevice(kId)) {
    }
    return client->granted > before;
  }

  static constexpr quota::PoolId kId{1};
  SimWorld world_;
};

TEST_F(MachinePoolTest, ItGrowsToWhatWasAskedForWhenTheOthersHaveEnded) {
  ASSERT_EQ(Target(), kPool - kOthers);
  SimClient* client = world_.Connect("a");
  EXPECT_FALSE(IsGranted(client, kPool));
  OthersHold(0);
  RunFor(seconds(4));
  EXPECT_EQ(Target(), kPool - kOthers) << "it may be free for a moment only";
  RunFor(seconds(4));
  EXPECT_EQ(Target(), kPool);
  EXPECT_EQ(world_.state().PoolAt(kId).headroom_bytes(), 8 * kGranule);
  const auto& lines = world_.last_lines();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& line) {
    return line.find("pool_grown") != std::string::npos;
  }));
  // Its tenant's share of it grows along.
  EXPECT_TRUE(IsGranted(client, kPool));
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachinePoolTest, ItGrowsByWhatStayedFreeAllTheTime) {
  OthersHold(4);
  RunFor(seconds(3));
  OthersHold(kOthers);
  RunFor(seconds(10));
  EXPECT_EQ(Target(), kPool - kOthers) << "it was taken again";
  OthersHold(4);
  RunFor(seconds(2));
  OthersHold(10);
  RunFor(seconds(2));
  OthersHold(4);
  RunFor(seconds(3));
  EXPECT_EQ(Target(), kPool - 10);
  RunFor(seconds(8));
  EXPECT_EQ(Target(), kPool - 4) << "and by the rest";
  EXPECT_EQ(world_.problem(), "");
}

// Memory taken after that is taken from the pool, past the broker.
TEST_F(MachinePoolTest, WhatOthersTakeAgainIsOutside) {
  OthersHold(0);
  RunFor(seconds(8));
  ASSERT_EQ(Target(), kPool);
  OthersHold(12);
  RunFor(seconds(2));
  EXPECT_EQ(Outside(), 12u);
  EXPECT_EQ(world_.state().PoolAt(kId).device->missing_bytes, 4 * kGranule);
  OthersHold(0);
  RunFor(seconds(10));
  EXPECT_EQ(Target(), kPool) << "it is the same memory";
  EXPECT_EQ(Outside(), 0u);
  EXPECT_EQ(world_.problem(), "");
}

// A process that is done and has not let go yet, and lets go later.
TEST_F(MachinePoolTest, WhatIsUnreturnedIsNoGrowth) {
  SimClient* client = world_.Connect("a");
  ASSERT_TRUE(IsGranted(client, 20));
  const SimLease held = client->leases.begin()->second;
  world_.Do("close", [&](Turn& turn) {
    world_.machine().CloseSession(client->session, "it hung up", turn);
  });
  RunFor(seconds(10));
  ASSERT_FALSE(world_.state().PoolAt(kId).device->unreturned.empty());
  OthersHold(0);
  RunFor(seconds(10));
  world_.HoldSlabs(held, false);
  RunFor(seconds(10));
  EXPECT_LE(Target(), kPool);
  EXPECT_EQ(world_.state().PoolAt(kId).headroom_left_bytes() / kGranule, 8u);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachinePoolTest, AnOperatorsSizeStaysAndMayBeRaisedToWhatIsFreeNow) {
  const auto resize = [&](quota::Amount size) {
    bool ok = false;
    world_.Do("resize", [&](Turn& turn) {
      ok = world_.machine().operators().ResizePool("sim-1", size, turn).ok();
    });
    return ok;
  };
  EXPECT_FALSE(resize(quota::Amount::Bytes((kPool + 8) * kGranule)));
  EXPECT_TRUE(resize(quota::Amount::Bytes(20 * kGranule)));
  OthersHold(0);
  RunFor(seconds(8));
  EXPECT_EQ(Target(), 20u);
  EXPECT_TRUE(resize(quota::Amount::Bytes((kPool + 8) * kGranule)));
  EXPECT_EQ(Target(), kPool + 8);
  EXPECT_EQ(world_.problem(), "");
}

}  // namespace
}  // namespace gmb::broker
