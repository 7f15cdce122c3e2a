#ifndef GMB_TESTS_BROKER_CORE_CORE_FIXTURE_H_
#define GMB_TESTS_BROKER_CORE_CORE_FIXTURE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/core.h"
#include "broker/core/in_process_keeper.h"
#include "broker/core/ticker.h"
#include "device/devices.h"
#include "gtest/gtest.h"
#include "tests/broker/core/fake_peer.h"
#include "tests/device/faulty_allocator.h"

namespace gmb::broker {

inline constexpr uint64_t kMiB = 1 << 20;

// A whole core over host memory, with its ticker, keeper and journal.
class CoreFixture : public testing::Test {
 protected:
  explicit CoreFixture(CoreOptions options = {})
      : core(options, {&clock, &keeper, &journal, &events}) {
    core.SetWakeTicker([this] {
      if (ticker != nullptr) ticker->Wake();
    });
  }
  ~CoreFixture() override {
    // A session's outbox and its FakePeer hold each other until it is closed.
    for (const uint64_t session : sessions) core.CloseSession(session, "end");
    if (ticker != nullptr) ticker->Stop();
  }

  void AddHostPool(
      uint64_t bytes, const std::string& uuid = "host-0",
      std::chrono::milliseconds reuse_for = std::chrono::seconds(5)) {
    auto allocator = device::OpenHostAllocator({bytes, uuid});
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    AddPool(*std::move(allocator), bytes, reuse_for);
  }
  void AddPool(std::unique_ptr<device::Allocator> allocator, uint64_t bytes,
               std::chrono::milliseconds reuse_for = std::chrono::seconds(5)) {
    auto worker =
        DeviceWorker::Create(std::move(allocator), &keeper, &slab_ids);
    ASSERT_TRUE(worker.ok()) << worker.status();
    PoolOptions options{*std::move(worker), nullptr, bytes, bytes,
                        SlabPool::DefaultOptions(bytes, 2 * kMiB)};
    options.slabs.reuse_for = reuse_for;
    // Before the pool's worker, which may wake it.
    if (ticker == nullptr)
      ticker = std::make_unique<Ticker>([this] { return core.Tick(); });
    ASSERT_TRUE(core.AddPool(std::move(options)).ok());
  }

  // A pool on a device that fails when told to; null when it cannot be had.
  device::FaultyAllocator* AddFaultyPool(
      uint64_t device_bytes, uint64_t pool_bytes,
      device::DeviceKind kind = device::DeviceKind::kHost) {
    auto host = device::OpenHostAllocator({device_bytes, "host-0"});
    if (!host.ok()) return nullptr;
    auto faulty = std::make_unique<device::FaultyAllocator>(*std::move(host));
    device::FaultyAllocator* faults = faulty.get();
    faulty->SetKind(kind);
    AddPool(std::move(faulty), pool_bytes);
    return faults;
  }

  void SetTenant(const std::string& name, quota::Amount guarantee,
                 quota::Amount limit) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = {guarantee, limit, 1};
    ASSERT_TRUE(core.SetTenant(policy).ok());
  }
  std::shared_ptr<FakePeer> Connect(const std::string& tenant, pid_t pid = 0) {
    auto peer = std::make_shared<FakePeer>(&core);
    PeerIdentity identity;
    identity.origin = Origin::kTenantDirectory;
    identity.tenant_directory = tenant;
    identity.pid = pid;
    const absl::Status opened = peer->Open(identity);
    {
      ipc::MutexLock lock(&sessions_mu);
      sessions.push_back(peer->session);
    }
    EXPECT_TRUE(opened.ok()) << opened;
    return peer;
  }

  v1::PoolStatus Pool(int index = 0) { return core.Status().pools(index); }
  // Waits until the pool satisfies `wanted`, for at most 10 s.
  template <typename Predicate>
  bool AwaitPool(Predicate wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!wanted(Pool())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  ipc::Mutex sessions_mu;  // tests connect from several threads
  std::vector<uint64_t> sessions;
  SystemClock clock;
  InProcessKeeper keeper;
  InProcessJournal journal;
  EventBus events;
  std::atomic<SlabId> slab_ids{1};
  std::unique_ptr<Ticker> ticker;
  Core core;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_CORE_FIXTURE_H_
