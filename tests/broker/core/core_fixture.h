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
#include "device/host/host_copy_engine.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/host_pool.h"
#include "gtest/gtest.h"
#include "tests/broker/core/fake_peer.h"
#include "tests/broker/machine/record_book.h"
#include "tests/device/faulty_allocator.h"
#include "tests/device/faulty_copy_engine.h"
#include "tests/pool_sum.h"

namespace gmb::broker {

inline constexpr uint64_t kMiB = 1 << 20;

// The system's, and further ahead at will: call core.Tick() then.
class AdvancedClock final : public Clock {
 public:
  [[nodiscard]] quota::Instant Now() const override {
    const quota::Instant held = held_.load();
    const quota::Instant now = held == kNotHeld ? system_.Now() : held;
    return now + quota::Nanoseconds(ahead_ns_.load());
  }
  [[nodiscard]] absl::Time WallTime() const override {
    return system_.WallTime() + absl::Nanoseconds(wall_ahead_ns_.load());
  }
  void Advance(std::chrono::nanoseconds by) { ahead_ns_ += by.count(); }
  // Until GoOn it is only Advance that lets time pass.
  void Hold() { held_ = system_.Now(); }
  void GoOn() { held_ = kNotHeld; }
  // As by hand, or by NTP.
  void SetWallAhead(absl::Duration by) {
    wall_ahead_ns_ = absl::ToInt64Nanoseconds(by);
  }

 private:
  static constexpr quota::Instant kNotHeld = quota::Instant::Max();

  SystemClock system_;
  std::atomic<quota::Instant> held_{kNotHeld};
  std::atomic<int64_t> ahead_ns_{0};
  std::atomic<int64_t> wall_ahead_ns_{0};
};

// The promises of the core, as of its last turn. Thread-safe.
class KeptJournal final : public Journal {
 public:
  void Commit(const RecordChanges& changes) override {
    base::MutexLock lock(&mu_);
    book_.Apply(changes);
  }
  [[nodiscard]] Records All() const {
    base::MutexLock lock(&mu_);
    return book_.All();
  }

 private:
  mutable base::Mutex mu_;
  RecordBook book_ ABSL_GUARDED_BY(mu_);
};

// A whole core over host memory, with its ticker, keeper and journal.
class CoreFixture : public testing::Test {
 protected:
  explicit CoreFixture(MachineOptions options = {},
                       uint64_t host_pool_bytes = 0)
      : CoreFixture(options, NewHostPool(host_pool_bytes)) {}
  CoreFixture(const MachineOptions& options,
              std::unique_ptr<device::HostPool> made)
      : host_pool(std::move(made)),
        core(Recorded(options),
             {&clock, &keeper, &events, host_pool.get(), &journal}) {
    core.SetWakeTicker([this] {
      if (ticker != nullptr) ticker->Wake();
    });
  }
  static MachineOptions Recorded(MachineOptions options) {
    options.recorded = true;
    return options;
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
    PoolOptions options{*std::move(worker), NewCopier(), bytes, bytes,
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
      base::MutexLock lock(&sessions_mu);
      sessions.push_back(peer->session);
    }
    EXPECT_TRUE(opened.ok()) << opened;
    return peer;
  }

  v1::PoolStatus Pool(int index = 0) {
    CheckSums();
    return core.Status().pools(index);
  }
  // These sums hold in every answer.
  void CheckSums() const {
    const v1::GetStatusResponse status = core.Status();
    for (const v1::PoolStatus& pool : status.pools()) {
      EXPECT_EQ(SumOfParts(pool), pool.capacity_bytes())
          << pool.ShortDebugString();
      EXPECT_GE(pool.capacity_bytes(), pool.target_bytes());
    }
  }
  // Waits until the pool satisfies `wanted`, for at most kPatience.
  template <typename Predicate>
  bool AwaitPool(Predicate wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (!wanted(Pool())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      // Looks often, without a processor of its own.
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  static std::unique_ptr<device::HostPool> NewHostPool(uint64_t bytes) {
    if (bytes == 0) return nullptr;
    return *device::HostPool::Create({.bytes = bytes, .threads = 1}, nullptr);
  }
  std::unique_ptr<device::Copier> NewCopier() {
    if (host_pool == nullptr) return nullptr;
    const auto engine = [](device::CopyFaults* faults) {
      return std::make_unique<device::FaultyCopyEngine>(
          std::make_unique<device::HostCopyEngine>(), faults, /*seed=*/1);
    };
    return std::make_unique<device::Copier>(
        host_pool.get(), engine(&faults_out), engine(&faults_in),
        device::CopyPacing{});
  }

  base::Mutex sessions_mu;  // tests connect from several threads
  std::vector<uint64_t> sessions;
  AdvancedClock clock;
  InProcessKeeper keeper;
  KeptJournal journal;
  EventBus events;
  std::atomic<SlabId> slab_ids{1};
  std::unique_ptr<Ticker> ticker;
  device::CopyFaults faults_out;
  device::CopyFaults faults_in;
  std::unique_ptr<device::HostPool> host_pool;
  Core core;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_CORE_FIXTURE_H_
