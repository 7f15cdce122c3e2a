// The users of a lease: its session, all who are attached, and their groups.
#include "broker/machine/lease_users.h"

#include <chrono>
#include <set>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class LeaseUsersTest : public MachineFixture {
 protected:
  void SetUp() override { SetTenant("a"); }
  std::multiset<uint64_t> Users(quota::LeaseId lease) {
    std::multiset<uint64_t> ids;
    for (const auto* user : UsersOf(state(), state().LeaseAt(lease)))
      ids.insert(user->id);
    return ids;
  }
  quota::Gate Over(quota::LeaseId lease) {
    return GateOver(state(), state().LeaseAt(lease), world.now());
  }
  bool Wants(const SimClient* client) {
    return WantsIn(state(), &state().SessionAt(client->session));
  }
};

TEST_F(LeaseUsersTest, ALeaseIsUsedByItsSession) {
  SimClient* client = Parked("a");
  EXPECT_EQ(Users(Lease(client, 2)),
            (std::multiset<uint64_t>{client->session}));
}

TEST_F(LeaseUsersTest, AndByItsWholeGroupEachOnce) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  const quota::LeaseId lease = Lease(one, 2, {.share_as = "w"});
  const std::multiset<uint64_t> both{one->session, two->session};
  EXPECT_EQ(Users(lease), both);
  EXPECT_EQ(Outcome(two, Attach(two, "w")), "attached");
  EXPECT_EQ(Users(lease), both);
}

TEST_F(LeaseUsersTest, ASharedOneByAllWhoAreAttachedOrNobody) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease =
      Lease(writer, 2, {.share_as = "w", .keep = true});
  SimClient* reader = Parked("a");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  EXPECT_EQ(Users(lease),
            (std::multiset<uint64_t>{writer->session, reader->session}));
  End(writer);
  EXPECT_EQ(Users(lease), std::multiset<uint64_t>{reader->session});
  Release(reader, lease);
  EXPECT_TRUE(Users(lease).empty());
  EXPECT_EQ(Over(lease), quota::Gate::kParked) << "nobody is in the way";
}

TEST_F(LeaseUsersTest, TheLeastParkedGateCounts) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease = Lease(writer, 2, {.share_as = "w"});
  SimClient* reader = Parked("a");
  EXPECT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  EXPECT_EQ(Over(lease), quota::Gate::kParked);
  EXPECT_TRUE(Enter(reader));
  EXPECT_EQ(Over(lease), quota::Gate::kActive);
  SimClient* off = Connect("a");
  EXPECT_EQ(Outcome(off, Attach(off, "w")), "attached");
  EXPECT_EQ(Over(lease), quota::Gate::kOff);
  End(off);
  Park(reader);
  Reclaim("a");
  EXPECT_EQ(Over(lease), quota::Gate::kClosed);
}

TEST_F(LeaseUsersTest, ASessionWantsInWhileItOrItsGroupWaits) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  SimClient* other = Parked("a");
  Lease(one, 2);
  Lease(other, 2);
  Reclaim("a");
  Work();
  EXPECT_FALSE(Wants(one));
  Restore(two, seconds(60));
  EXPECT_TRUE(Wants(one));
  EXPECT_TRUE(Wants(two));
  EXPECT_FALSE(Wants(other));
  Work();
  EXPECT_FALSE(Wants(one)) << "it is in";
}

TEST_F(LeaseUsersTest, ALeaseIsAskedBackWhileTheRequestForItWaits) {
  SetTenant("b");
  SimClient* writer = Parked("a");
  const quota::LeaseId lease = Lease(writer, 8, {.share_as = "w"});
  Reclaim("a");
  Work();
  const auto asked = [&] {
    return IsAskedBack(state(), state().LeaseAt(lease));
  };
  EXPECT_FALSE(asked());
  SimClient* holder = Connect("b");
  Lease(holder, 60);
  Restore(writer, seconds(2));
  EXPECT_TRUE(asked());
  RunFor(seconds(3));
  EXPECT_FALSE(asked()) << "it is denied by now";
  SimClient* late = Parked("a");
  Attach(late, "w", seconds(60));
  EXPECT_TRUE(asked()) << "for who attaches";
}

TEST_F(LeaseUsersTest, AGroupsGatesAreLookedAtOnceForAllItsLeases) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  const quota::LeaseId first = Lease(one, 2);
  const quota::LeaseId second = Lease(two, 2);
  const quota::LeaseId third = Lease(one, 2);
  GroupGates groups;
  for (const quota::LeaseId lease : {first, second, third}) {
    EXPECT_EQ(GateOver(state(), state().LeaseAt(lease), world.now(), &groups),
              quota::Gate::kParked);
  }
  EXPECT_EQ(groups.looks, 2u);
  ASSERT_TRUE(Enter(two));
  const auto over = [&](quota::LeaseId lease) {
    return GateOver(state(), state().LeaseAt(lease), world.now(), &groups);
  };
  EXPECT_EQ(over(second), quota::Gate::kActive) << "the holder's own is read";
  EXPECT_EQ(over(first), quota::Gate::kParked) << "as it was";
}

}  // namespace
}  // namespace gmb::broker
