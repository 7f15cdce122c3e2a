// A copy of the machine goes its own way.
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_invariants.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

TEST(MachineCopyTest, WhatACopyDoesLeavesTheMachineAsItWas) {
  SimWorld world({}, /*pools=*/1, 64 * SimWorld::kGranule,
                 /*host_pool_bytes=*/64 * SimWorld::kGranule);
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {quota::Amount::Bytes(8 * SimWorld::kGranule),
                  quota::Amount::Fraction(1), 1};
  world.Do("set tenant", [&](Turn& turn) {
    ASSERT_TRUE(world.machine().operators().SetTenant(policy, turn).ok());
  });
  SimClient* client = world.Connect("a");
  v1::ClientMessage message;
  message.set_request_id(1);
  message.mutable_acquire()->set_bytes(20 * SimWorld::kGranule);
  message.mutable_acquire()->set_share_as("x");
  world.Send(client, message);
  while (world.StepDevice(quota::PoolId{1})) {
  }
  ASSERT_EQ(client->granted, 1u);

  Machine copy(world.machine());
  EXPECT_EQ(WhatIsWrong(copy.state(), world.now()), "");
  Turn turn(world.now(), absl::UnixEpoch());
  copy.CloseSession(client->session, "of the copy", turn);
  copy.Settle(turn);
  EXPECT_TRUE(copy.state().leases->empty());
  EXPECT_EQ(copy.state().engine->leases(), 0u);
  EXPECT_EQ(copy.state().sessions->Find(client->session), nullptr);
  EXPECT_EQ(WhatIsWrong(copy.state(), world.now()), "");

  EXPECT_EQ(world.state().leases->size(), 1u);
  EXPECT_EQ(world.state().engine->leases(), 1u);
  EXPECT_NE(world.state().sessions->Find(client->session), nullptr);
  EXPECT_NE(world.state().shared_names->Find(
                world.state().tenants->Find("a")->id, "x"),
            nullptr);
  EXPECT_EQ(WhatIsWrong(world.state(), world.now()), "");
  // And it still goes on.
  world.Close(client, "gone");
  EXPECT_TRUE(world.state().leases->empty());
  EXPECT_EQ(world.problem(), "");
}

}  // namespace
}  // namespace gmb::broker
