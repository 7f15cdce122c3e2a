// Cancels, departures and evictions while a lease's slabs are being made, or
// before its client has mapped them.
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class MachineCreateTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Connect("a");
  }
  // Its slabs are being made, and that will fail again and again.
  uint64_t AskForWhatCannotBeMade() {
    Lease(Connect("b"), 50);
    world.device(kPool).SetOutside(18 * kGranule);
    const uint64_t id = Ask(client, 14, {.wait = seconds(60)});
    EXPECT_EQ(Waiting(), 0u) << "it is granted";
    EXPECT_EQ(Outcome(client, id), "nothing") << "and not made";
    return id;
  }
  SimClient* client = nullptr;
};

TEST_F(MachineCreateTest, ACancelWhileSlabsAreMadeCountsWhenThatFails) {
  const uint64_t id = AskForWhatCannotBeMade();
  Cancel(client, id);
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "CANCELLED_BY_CLIENT");
  EXPECT_EQ(Waiting(), 0u) << "it waits on for what nobody wants";
}

// However many others the session has, and however often it says so.
TEST_F(MachineCreateTest, TheLeaseThatIsBeingMadeIsFoundByItsRequest) {
  const uint64_t other = Ask(client, 14);
  const uint64_t id = Ask(client, 14);
  const auto made_for = [&](uint64_t request) -> const ::gmb::broker::Lease& {
    return state().LeaseAt(
        SessionOf(client).talk->pending.at(request).being_made);
  };
  EXPECT_EQ(made_for(other).request.client_id, other);
  EXPECT_EQ(made_for(id).request.client_id, id);
  EXPECT_FALSE(made_for(id).life->cancelled);
  for (int i = 0; i < 2; ++i) {
    Cancel(client, id);
    EXPECT_TRUE(made_for(id).life->cancelled);
    EXPECT_FALSE(made_for(other).life->cancelled);
  }
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "granted");
}

TEST_F(MachineCreateTest, ACancelWhileSlabsAreMadeAgainIsOfTheNewLease) {
  const uint64_t id = Ask(client, 14, {.wait = seconds(60)});
  const auto being_made = [&] {
    return SessionOf(client).talk->pending.at(id).being_made;
  };
  const quota::LeaseId first = being_made();
  // A ready slab is given up first, and then it is tried anew.
  for (int i = 0; i < 10 && being_made() == first; ++i) {
    world.device(kPool).FailNextCreate(absl::ResourceExhaustedError("none"));
    ASSERT_TRUE(world.StepDevice(kPool));
  }
  ASSERT_NE(being_made(), first);
  EXPECT_EQ(Where(first), "gone");
  Cancel(client, id);
  EXPECT_TRUE(state().LeaseAt(being_made()).life->cancelled);
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "granted");
}

// The client gives back what crosses its Cancel.
TEST_F(MachineCreateTest, ACancelWhileSlabsAreMadeIsTooLateWhenThatSucceeds) {
  const uint64_t id = Ask(client, 14);
  Cancel(client, id);
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "granted");
}

TEST_F(MachineCreateTest, ATenantThatLeavesWhileSlabsAreMadeWaitsForNothing) {
  const uint64_t id = AskForWhatCannotBeMade();
  Depart("a", seconds(60));
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "DRAINING") << "it waits on, and stays";
}

TEST_F(MachineCreateTest, ASessionThatEndsWhileSlabsAreMadeLeavesNothing) {
  AskForWhatCannotBeMade();
  End(client);
  RunDevice();
  EXPECT_EQ(InPool().leases, 1u);
  EXPECT_EQ(Waiting(), 0u);
}

// The Evict comes after the grant on the same stream, and the client follows it
// once it has mapped: MoveTable keeps it until then.
TEST_F(MachineCreateTest, ALeaseThatIsEvictedBeforeItWasMappedLosesNothing) {
  SimClient* idle = Parked("a");
  const quota::LeaseId lease = Lease(idle, 40);
  SimClient* other = Connect("b");
  const uint64_t id = Ask(other, 40, {.wait = seconds(60)});
  RunCopies();
  ASSERT_EQ(idle->moves.size(), 1u);
  EXPECT_EQ(idle->moves.front().evict().lease_id(), lease.value);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(lease.value);
  Notify(idle, mapped);
  EXPECT_EQ(Where(lease), "evicting");
  Follow(idle);
  RunDevice();
  EXPECT_EQ(Outcome(other, id), "granted");
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(InHostPool("a").true_bytes, 40 * kGranule);
}

}  // namespace
}  // namespace gmb::broker
