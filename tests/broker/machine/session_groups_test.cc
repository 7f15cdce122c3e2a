// Sessions that move together (docs/protocol.md, "On and off"): who belongs to
// whom.
#include "broker/machine/session_groups.h"

#include <set>
#include <string>

#include "broker/machine/lease_users.h"
#include "broker/machine/reclaim_rows.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

class SessionGroupsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  std::string Join(SimClient* client, const std::string& name) {
    return Outcome(client, SetGate(client, true, name));
  }
  // All who move with the session, as a lease of its says.
  std::set<uint64_t> With(SimClient* client) {
    std::set<uint64_t> ids;
    for (const auto* user : UsersOf(state(), state().LeaseAt(LeaseOf(client))))
      ids.insert(user->id);
    return ids;
  }
  quota::GroupId GroupOf(SimClient* client) {
    return RowOf(state(), state().LeaseAt(LeaseOf(client)), world.now()).group;
  }
  quota::LeaseId LeaseOf(SimClient* client) {
    if (client->leases.empty()) Lease(client, 1);
    return {client->leases.begin()->first};
  }
};

TEST_F(SessionGroupsTest, ANameIsShortAndPrintable) {
  const std::string longest(63, 'g');
  EXPECT_EQ(Join(Connect("a"), longest), "gate set");
  EXPECT_EQ(Join(Connect("a"), longest + "g"), "BAD_REQUEST");
  for (const char* name : {"a\n", "\x1b[31m", "\x7f"})
    EXPECT_EQ(Join(Connect("a"), name), "BAD_REQUEST") << name;
  EXPECT_EQ(Join(Connect("a"), "ranks of one model"), "gate set");
}

TEST_F(SessionGroupsTest, MembersAreThoseOfOneTenantAndOneName) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  SimClient* another = Parked("a", "h");
  SimClient* stranger = Parked("b", "g");
  const std::set<uint64_t> both{one->session, two->session};
  EXPECT_EQ(With(one), both);
  EXPECT_EQ(With(two), both);
  EXPECT_EQ(With(another), std::set<uint64_t>{another->session});
  EXPECT_EQ(With(stranger), std::set<uint64_t>{stranger->session});
  EXPECT_EQ(GroupOf(one), GroupOf(two));
  EXPECT_NE(GroupOf(one), GroupOf(another));
  EXPECT_NE(GroupOf(one), GroupOf(stranger));
}

TEST_F(SessionGroupsTest, OneWithoutAGroupIsAlone) {
  SimClient* one = Parked("a");
  SimClient* two = Parked("a");
  EXPECT_EQ(With(one), std::set<uint64_t>{one->session});
  EXPECT_EQ(GroupOf(one), quota::GroupId{});
  EXPECT_EQ(GroupOf(two), quota::GroupId{});
}

TEST_F(SessionGroupsTest, ANameMayBeGivenLater) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a");
  EXPECT_EQ(Join(two, "g"), "gate set");
  EXPECT_EQ(With(one).size(), 2u);
  EXPECT_EQ(Join(two, ""), "gate set") << "no name changes nothing";
  EXPECT_EQ(With(one).size(), 2u);
}

TEST_F(SessionGroupsTest, WhoHasLeftOrEndedIsNoMember) {
  SimClient* one = Parked("a", "g");
  SimClient* two = Parked("a", "g");
  SimClient* three = Parked("a", "g");
  EXPECT_EQ(With(one).size(), 3u);
  EXPECT_TRUE(Enter(two));
  EXPECT_EQ(Outcome(two, SetGate(two, false)), "gate set");
  EXPECT_EQ(With(one), (std::set<uint64_t>{one->session, three->session}));
  End(one);
  EXPECT_EQ(With(three), std::set<uint64_t>{three->session});
  EXPECT_EQ(With(two), std::set<uint64_t>{two->session});
}

}  // namespace
}  // namespace gmb::broker
