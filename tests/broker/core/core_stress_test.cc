// Sessions of many threads against one core: nothing is lost, doubled or
// stuck, whatever the interleaving. Meant for ThreadSanitizer too.
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kPool = 512 * kMiB;
constexpr int kThreads = 6;
constexpr int kSteps = 60;

class CoreStress : public CoreFixture,
                   public testing::WithParamInterface<int> {};

// One client thread: leases, releases, waits, cancels, dies and comes again;
// and sometimes the pool's size is changed.
void Live(Core* core, const std::string& tenant, unsigned seed,
          const std::function<void()>& each_step,
          const std::function<std::shared_ptr<FakePeer>(const std::string&)>&
              connect) {
  std::mt19937 random(seed);
  std::shared_ptr<FakePeer> peer = connect(tenant);
  std::vector<uint64_t> leases;
  for (int step = 0; step < kSteps; ++step) {
    each_step();
    if (random() % 16 == 0) {
      ASSERT_TRUE(
          core->ResizePool("host-0",
                           quota::Amount::Bytes((1 + random() % 4) * kPool / 4))
              .ok());
    }
    switch (random() % 8) {
      case 0:
        core->CloseSession(peer->session, "dies");
        leases.clear();
        peer = connect(tenant);
        break;
      case 1: {
        const uint64_t request =
            peer->Acquire((1 + random() % 100) * 2 * kMiB, 30);
        v1::ClientMessage cancel;
        cancel.mutable_cancel()->set_acquire_request_id(request);
        (void)peer->Send(cancel);
        const v1::BrokerMessage answer = peer->Answer(request);
        ASSERT_TRUE(answer.has_grant() || answer.has_error());
        if (answer.has_grant()) leases.push_back(answer.grant().lease_id());
        break;
      }
      case 2:
      case 3:
        if (leases.empty()) break;
        ASSERT_TRUE(peer->Answer(peer->Release(leases.back())).has_released());
        leases.pop_back();
        break;
      default: {
        const v1::BrokerMessage answer =
            peer->Answer(peer->Acquire((1 + random() % 40) * 2 * kMiB));
        ASSERT_TRUE(answer.has_grant() || answer.has_error());
        if (answer.has_grant()) leases.push_back(answer.grant().lease_id());
      }
    }
  }
  core->CloseSession(peer->session, "done");
}

TEST_P(CoreStress, EverythingComesBackWhenAllHaveLeft) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  AddHostPool(kPool, "host-0", std::chrono::milliseconds(20));
  const std::string tenants[] = {"a", "b", "c"};
  SetTenant("a", quota::Amount::Fraction(0.3), quota::Amount::Fraction(1));
  SetTenant("b", quota::Amount::Fraction(0.2), quota::Amount::Fraction(0.5));
  SetTenant("c", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Live(
          &core, tenants[i % 3], static_cast<unsigned>(GetParam() * 100 + i),
          [this] { CheckSums(); },
          [this](const std::string& tenant) { return Connect(tenant); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(core.ResizePool("host-0", quota::Amount::Bytes(kPool)).ok());
  EXPECT_EQ(core.TenantSessions(), 0u);
  EXPECT_EQ(core.Status().leases(), 0u);
  EXPECT_EQ(core.Status().handles(), 0u);
  EXPECT_TRUE(journal.All().leases.empty());
  EXPECT_TRUE(journal.All().sessions.empty());
  EXPECT_TRUE(AwaitPool([this](const v1::PoolStatus& p) {
    return p.granted_bytes() == 0 && p.returned_bytes() == 0 &&
           p.scrubbing_bytes() == 0 && p.unreturned_bytes() == 0 &&
           p.ready_bytes() + p.float_bytes() == kPool &&
           p.float_bytes() < 2 * p.ready_slab_bytes() &&
           keeper.List().size() == p.slabs();
  }));
}

int Seeds() {
  const char* seeds = std::getenv("GMB_CORE_SEEDS");
  return seeds == nullptr ? 3 : std::atoi(seeds);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CoreStress, testing::Range(1, 1 + Seeds()));

}  // namespace
}  // namespace gmb::broker
