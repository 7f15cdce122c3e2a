// Cancels, departures and evictions while a lease's slabs are being made, or
// before its client has mapped them.
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_word.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kGranule = SimWorld::kGranule;
constexpr quota::PoolId kId{1};

class MachineCreateTest : public testing::Test {
 protected:
  MachineCreateTest() : world_({}, 1, 64 * kGranule, 64 * kGranule) {
    for (const std::string name : {"a", "b"}) {
      TenantPolicy policy;
      policy.name = name;
      policy.quota = {quota::Amount::Bytes(0), quota::Amount::Fraction(1), 1};
      world_.Do("set tenant", [&](Turn& turn) {
        ASSERT_TRUE(world_.machine().operators().SetTenant(policy, turn).ok());
      });
    }
    client_ = world_.Connect("a");
  }
  uint64_t Send(SimClient* from, v1::ClientMessage message) {
    message.set_request_id(++from->last_request);
    world_.Send(from, message);
    return from->last_request;
  }
  uint64_t Ask(SimClient* from, uint64_t granules) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(granules * kGranule);
    message.mutable_acquire()->mutable_wait()->set_seconds(60);
    from->acquires[from->last_request + 1] = message.acquire();
    return Send(from, message);
  }
  // Its slabs are being made, and that will fail again and again.
  uint64_t AskForWhatCannotBeMade() {
    SimClient* other = world_.Connect("b");
    Ask(other, 50);
    RunDevice();
    EXPECT_EQ(other->granted, 1u);
    world_.device(kId).SetOutside(18 * kGranule);
    const uint64_t id = Ask(client_, 14);
    EXPECT_EQ(world_.state().pending->size(), 0u) << "it is granted";
    EXPECT_FALSE(AnswerTo(id).has_value()) << "and not made";
    return id;
  }
  std::optional<v1::BrokerMessage> AnswerTo(uint64_t id) {
    return world_.state().SessionAt(client_->session).talk->answers.Find(id);
  }
  void RunDevice() {
    while (world_.StepDevice(kId)) {
    }
  }

  SimWorld world_;
  SimClient* client_ = nullptr;
};

TEST_F(MachineCreateTest, ACancelWhileSlabsAreMadeCountsWhenThatFails) {
  const uint64_t id = AskForWhatCannotBeMade();
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_acquire_request_id(id);
  Send(client_, cancel);
  RunDevice();
  ASSERT_TRUE(AnswerTo(id).has_value()) << "it waits on for what nobody wants";
  EXPECT_EQ(AnswerTo(id)->error().detail().reason(), v1::CANCELLED_BY_CLIENT);
  EXPECT_EQ(world_.state().engine->waiting(), 0u);
  EXPECT_EQ(world_.problem(), "");
}

// The client gives back what crosses its Cancel.
TEST_F(MachineCreateTest, ACancelWhileSlabsAreMadeIsTooLateWhenThatSucceeds) {
  const uint64_t id = Ask(client_, 14);
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_acquire_request_id(id);
  Send(client_, cancel);
  RunDevice();
  ASSERT_TRUE(AnswerTo(id).has_value());
  EXPECT_TRUE(AnswerTo(id)->has_grant());
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineCreateTest, ATenantThatLeavesWhileSlabsAreMadeWaitsForNothing) {
  const uint64_t id = AskForWhatCannotBeMade();
  world_.Do("see off", [&](Turn& turn) {
    ASSERT_TRUE(
        world_.machine()
            .operators()
            .StartDeparture(
                "a", std::chrono::seconds(60), [](const absl::Status&) {}, turn)
            .ok());
  });
  RunDevice();
  ASSERT_TRUE(AnswerTo(id).has_value()) << "it waits on, and keeps its tenant";
  EXPECT_EQ(AnswerTo(id)->error().detail().reason(), v1::DRAINING);
  EXPECT_EQ(world_.problem(), "");
}

TEST_F(MachineCreateTest, ASessionThatEndsWhileSlabsAreMadeLeavesNothing) {
  AskForWhatCannotBeMade();
  world_.Close(client_, "gone");
  RunDevice();
  EXPECT_EQ(world_.state().leases->size(), 1u);
  EXPECT_EQ(world_.state().engine->waiting(), 0u);
  EXPECT_EQ(world_.problem(), "");
}

// The Evict comes after the grant on the same stream, and the client follows it
// once it has mapped: MoveTable keeps it until then.
TEST_F(MachineCreateTest, ALeaseThatIsEvictedBeforeItWasMappedLosesNothing) {
  client_->cells->word.store(
      ipc::GateWord(ipc::GateState::kParked, 0, 1).bits());
  v1::ClientMessage on;
  on.mutable_set_gate()->set_on(true);
  Send(client_, on);
  Ask(client_, 40);
  RunDevice();
  ASSERT_EQ(client_->granted, 1u);
  const quota::LeaseId id{client_->leases.begin()->first};
  ASSERT_EQ(world_.state().LeaseAt(id).life->state, v1::LeaseInfo::GRANTED);
  SimClient* other = world_.Connect("b");
  Ask(other, 40);
  while (world_.StepCopy(/*out=*/true, /*fail=*/false)) {
  }
  ASSERT_EQ(client_->moves.size(), 1u);
  const v1::Evict evict = client_->moves.front().evict();
  EXPECT_EQ(evict.lease_id(), id.value);
  client_->moves.pop_front();
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(id.value);
  world_.Send(client_, mapped);
  EXPECT_EQ(world_.state().LeaseAt(id).move->residence, Residence::kEvicting);
  world_.HoldSlabs(client_->leases.at(id.value), false);
  v1::ClientMessage unmapped;
  unmapped.mutable_unmapped()->set_lease_id(id.value);
  unmapped.mutable_unmapped()->set_move(evict.move());
  world_.Send(client_, unmapped);
  RunDevice();
  EXPECT_EQ(other->granted, 1u);
  EXPECT_EQ(world_.state().LeaseAt(id).move->residence, Residence::kEvicted);
  EXPECT_NE(world_.state().host_books->TrueCopy(id), nullptr);
  EXPECT_EQ(world_.state().LeaseAt(id).life->state, v1::LeaseInfo::MAPPED);
  EXPECT_EQ(world_.problem(), "");
}

}  // namespace
}  // namespace gmb::broker
