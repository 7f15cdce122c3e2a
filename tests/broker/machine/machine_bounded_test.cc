// How often the leases are looked at for somebody who lacks bytes: counted, in
// simulated time.
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/gate_word.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kGranule = SimWorld::kGranule;
constexpr quota::PoolId kPool{1};

MachineOptions WithoutPauses() {
  MachineOptions options;
  options.max_sessions = 2000;
  options.planner.pause = false;
  return options;
}

class MachineBoundedTest : public testing::Test {
 protected:
  explicit MachineBoundedTest(uint64_t granules = 16)
      : world(WithoutPauses(), /*pools=*/1, granules * kGranule,
              /*host_pool_bytes=*/granules * kGranule) {}

  void SetTenant(const std::string& name, uint64_t guarantee, uint64_t limit) {
    TenantPolicy policy;
    policy.name = name;
    policy.max_sessions = 2000;
    policy.quota = {quota::Amount::Bytes(guarantee * kGranule),
                    quota::Amount::Bytes(limit * kGranule), 1};
    world.Do("set tenant", [&](Turn& turn) {
      ASSERT_TRUE(world.machine().operators().SetTenant(policy, turn).ok());
    });
  }
  uint64_t Send(SimClient* client, v1::ClientMessage message) {
    message.set_request_id(++client->last_request);
    world.Send(client, message);
    return client->last_request;
  }
  void Acquire(SimClient* client, uint64_t granules) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(granules * kGranule);
    message.mutable_acquire()->mutable_wait()->set_seconds(3600);
    client->acquires[client->last_request + 1] = message.acquire();
    Send(client, message);
    while (world.StepDevice(kPool)) {
    }
  }
  // At work, with so much.
  SimClient* Worker(const std::string& tenant, uint64_t granules) {
    SimClient* client = world.Connect(tenant);
    client->cells->word.store(
        ipc::GateWord(ipc::GateState::kOpen, 1, 1).bits());
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(true);
    Send(client, message);
    Acquire(client, granules);
    return client;
  }
  static void Park(SimClient* client) {
    client->cells->word.store(
        ipc::GateWord(ipc::GateState::kParked, 0, 2).bits());
  }
  template <typename Each>
  void Wait(std::chrono::nanoseconds time, const Each& each) {
    const quota::Instant end = world.now() + time;
    while (world.machine().NextDue(world.now()) < end &&
           world.problem().empty()) {
      world.AdvanceToDue();
      while (world.StepDevice(kPool)) {
      }
      each();
    }
  }
  // The look begins its count anew with every demand.
  struct Count {
    uint64_t last = 0;
    uint64_t all = 0;
    void See(const Look& look) {
      all += look.times() < last ? look.times() : look.times() - last;
      last = look.times();
    }
  };
  const Pool& pool() { return world.state().PoolAt(kPool); }

  SimWorld world;
};

TEST_F(MachineBoundedTest, WhoCannotBeServedIsPlannedForSomeTimesOnly) {
  SetTenant("a", 0, 16);
  SetTenant("b", 0, 16);
  Worker("a", 16);
  Count count;
  Acquire(world.Connect("b"), 8);
  Wait(std::chrono::seconds(60), [&] { count.See(pool().plan->look); });
  ASSERT_EQ(world.state().engine->waiting(), 1u);
  EXPECT_GE(count.all, 1u);
  EXPECT_LE(count.all, 100u) << "60 s, of which each look could be 5 ms apart";
  EXPECT_EQ(world.problem(), "");
}

TEST_F(MachineBoundedTest, ALimitWithNothingToTakeSleepsAndWakes) {
  SetTenant("a", 0, 16);
  SimClient* worker = Worker("a", 16);
  SetTenant("a", 0, 8);
  ASSERT_EQ(world.state().standing->size(), 1u);
  Count count;
  Wait(std::chrono::seconds(60),
       [&] { count.See(world.state().standing->front().look); });
  EXPECT_LE(count.all, 20u);
  Park(worker);
  const quota::Instant parked = world.now();
  while (worker->moves.empty() &&
         world.now() < parked + std::chrono::seconds(1)) {
    world.AdvanceToDue();
  }
  ASSERT_FALSE(worker->moves.empty()) << "the limit was not enforced";
  EXPECT_LE((world.now() - parked).count(), 20'000'000);
  EXPECT_EQ(world.problem(), "");
}

// What is wanted back although nobody's guarantee needs it may come later.
TEST_F(MachineBoundedTest, GatesAreReadNoMoreOftenThanTheyHaveTo) {
  SetTenant("a", 0, 16);
  SetTenant("owner", 4, 16);
  for (int i = 0; i < 16; ++i) Worker("a", 1);
  SetTenant("a", 0, 8);
  const GateWatchList& watch = *world.state().gate_watch;
  const auto reads_a_second = [&] {
    Wait(std::chrono::seconds(1), [] {});
    const uint64_t before = watch.reads();
    Wait(std::chrono::seconds(10), [] {});
    return (watch.reads() - before) / 10;
  };
  EXPECT_GE(reads_a_second(), 16 * 50u);
  EXPECT_LE(reads_a_second(), 16 * 63u);
  Acquire(world.Connect("owner"), 4);
  ASSERT_EQ(world.state().engine->waiting(), 1u);
  EXPECT_GE(reads_a_second(), 16 * 50u);
  EXPECT_LE(reads_a_second(), 16 * 63u);
  EXPECT_EQ(world.problem(), "");
}

constexpr uint64_t kMany = 500;

class MachineManyGatesTest : public MachineBoundedTest {
 protected:
  MachineManyGatesTest() : MachineBoundedTest(kMany) {}
};

TEST_F(MachineManyGatesTest, TheOneThatParksIsNoticedSoon) {
  SetTenant("a", 0, kMany);
  SetTenant("owner", 10, kMany);
  std::vector<SimClient*> workers;
  for (uint64_t i = 0; i < kMany; ++i) workers.push_back(Worker("a", 1));
  Acquire(world.Connect("owner"), 10);
  Wait(std::chrono::seconds(30), [] {});
  for (const size_t which : {size_t{0}, kMany / 2, kMany - 1}) {
    Park(workers[which]);
    const quota::Instant parked = world.now();
    while (workers[which]->moves.empty() &&
           world.now() < parked + std::chrono::seconds(1)) {
      world.AdvanceToDue();
    }
    EXPECT_LE((world.now() - parked).count(), 20'000'000) << which;
  }
  EXPECT_EQ(world.problem(), "");
}

TEST_F(MachineManyGatesTest, TheOneThatParksIsTakenWithoutAnotherLook) {
  SetTenant("a", 0, kMany);
  SetTenant("owner", 10, kMany);
  std::vector<SimClient*> workers;
  for (uint64_t i = 0; i < kMany; ++i) workers.push_back(Worker("a", 1));
  Acquire(world.Connect("owner"), 10);
  Wait(std::chrono::seconds(30), [] {});
  const uint64_t looks = pool().plan->look.times();
  ASSERT_GE(looks, 1u);
  SimClient* const parks = workers[kMany / 2];
  Park(parks);
  const quota::Instant parked = world.now();
  while (parks->moves.empty() &&
         world.now() < parked + std::chrono::seconds(1)) {
    world.AdvanceToDue();
  }
  EXPECT_FALSE(parks->moves.empty());
  EXPECT_EQ(pool().plan->look.times(), looks);
  EXPECT_FALSE(pool().plan->look.under_way());
  EXPECT_EQ(world.problem(), "");
}

}  // namespace
}  // namespace gmb::broker
