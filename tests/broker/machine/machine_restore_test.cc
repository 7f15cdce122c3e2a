// Restores of sessions that share leases, step by step: the cases that random
// runs found.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;

class MachineRestoreTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
  }
  // So much of what tenant `a` has parked leaves the device.
  void Evict(uint64_t granules = 0) {
    Reclaim("a", granules);
    Work();
  }
};

// Each denial made the other ask, whose denial made the first one ask.
TEST_F(MachineRestoreTest, RestoresOfOneLeaseThatAreDeniedAtOnceAllEnd) {
  SimClient* writer = Parked("a");
  Lease(writer, 20, {.share_as = "x"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "x")), "attached");
  Evict();
  Lease(Connect("b"), 60);
  const uint64_t of_writer = Restore(writer);
  const uint64_t of_reader = Restore(reader);
  ASSERT_EQ(Waiting(), 1u);
  SetTenant("a", {.limit = 5});
  EXPECT_EQ(Outcome(writer, of_writer), "TENANT_LIMIT");
  EXPECT_EQ(Outcome(reader, of_reader), "TENANT_LIMIT");
  EXPECT_EQ(Waiting(), 0u);
}

// The lease that it asked back was left meanwhile, and comes all the same.
TEST_F(MachineRestoreTest, RestoreIsAnsweredWhenItsLastEvictedLeaseWasLeft) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease =
      Lease(writer, 20, {.share_as = "x", .keep = true});
  Evict();
  SimClient* other = Connect("b");
  const quota::LeaseId blocking = Lease(other, 60);
  const uint64_t id = Restore(writer);
  Release(writer, lease);
  Release(other, blocking);
  RunDevice();
  EXPECT_EQ(Outcome(writer, id), "restored");
}

// A group's member was paused for a lease of another member, whose own gate was
// closed already. Then it left the group, and nobody is paused any more.
TEST_F(MachineRestoreTest, LeaseForgetsPauseOfOneWhoLeftTheGroup) {
  SetTenant("b", {.guarantee = 50});
  SimClient* holder = Parked("a");
  Lease(holder, 20);
  Lease(holder, 20);
  Evict(20);
  ASSERT_TRUE(IsClosed(holder));
  SimClient* busy = Parked("a", "g");
  SetGate(holder, true, "g");
  ASSERT_TRUE(Enter(busy));
  Ask(Connect("b"), 50, {.wait = seconds(10)});
  for (int i = 0; i < 10 && !GateOf(busy).paused(); ++i) world.AdvanceToDue();
  ASSERT_TRUE(GateOf(busy).paused());
  SetGate(busy, false);
  EXPECT_FALSE(GateOf(busy).paused());
  EXPECT_FALSE(Index().AnyAwaitsPause(kPool));
}

// It did not answer, so that the lease became hard; then it left, and the copy
// failed.
TEST_F(MachineRestoreTest, LeaseOfOneThatDidNotAnswerIsSoftAgainWhenItHasLeft) {
  SimClient* writer = Parked("a");
  const quota::LeaseId lease =
      Lease(writer, 20, {.share_as = "x", .keep = true});
  Reclaim("a");
  world.Advance(seconds(3));
  ASSERT_TRUE(IsHard(lease));
  End(writer);
  RunCopies(/*fail=*/true);
  ASSERT_EQ(Where(lease), "mapped");
  EXPECT_FALSE(IsHard(lease));
}

// It is copied into the answer of each of them, and stays with the lease.
TEST_F(MachineRestoreTest, LittleOfWhatAClientSaysWentWrongReachesItsGroup) {
  SimClient* holder = Parked("a", "g");
  const quota::LeaseId lease = Lease(holder, 20);
  SimClient* member = Parked("a", "g");
  Evict();
  ASSERT_EQ(Where(lease), "evicted");
  const uint64_t of_holder = Restore(holder);
  const uint64_t of_member = Restore(member);
  RunDevice();
  RunCopies();
  // A character of two bytes lies across the 200th.
  RefuseMoves(holder,
              std::string(199, 'x') + "\xc3\xa4" + std::string(7'800, 'y'));
  for (const auto& [client, id] :
       {std::pair(holder, of_holder), std::pair(member, of_member)}) {
    ASSERT_EQ(Outcome(client, id), "DEVICE_ERROR");
    const v1::BrokerMessage answer = AnswerTo(client, id);
    EXPECT_LT(answer.ByteSizeLong(), 1024u);
    EXPECT_EQ(answer.error().message().substr(
                  answer.error().message().find(": x") + 2),
              std::string(199, 'x'));
  }
  const std::vector<v1::Event> failed = Events("restore_failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_LT(failed[0].ByteSizeLong(), 1024u);
}

TEST_F(MachineRestoreTest, LittleOfWhyAClientDoesNotUnmapIsKept) {
  SimClient* holder = Parked("a");
  const quota::LeaseId lease = Lease(holder, 20);
  Reclaim("a");
  RunCopies();
  RefuseMoves(holder, std::string(8'000, 'x'));
  ASSERT_EQ(Where(lease), "mapped");
  EXPECT_EQ(state().LeaseAt(lease).copy->moved.message().size(), 200u);
  EXPECT_EQ(Events("evict_failed").at(0).message().size(), 200u);
}

}  // namespace
}  // namespace gmb::broker
