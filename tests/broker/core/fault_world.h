// A core in which every seam can fail, two clients that keep their word and
// look after their contents, and a life that does everything.
#ifndef GMB_TESTS_BROKER_CORE_FAULT_WORLD_H_
#define GMB_TESTS_BROKER_CORE_FAULT_WORLD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tests/broker/core/core_fixture.h"
#include "tests/broker/core/faulty_keeper.h"

namespace gmb::broker {

// A client that acknowledges, unmaps and maps as it is told, writes into the
// slabs of its leases, and can say whether they hold that still.
class HonestPeer final : public FakePeer {
 public:
  explicit HonestPeer(Core* core) : FakePeer(core), core_(core) {}

  bool Write(v1::BrokerMessage message) override;
  absl::StatusOr<bool> TrySend(const std::string& frame,
                               absl::Span<const int> fds) override;

  void Fill(uint64_t lease, uint64_t value);
  // Empty also where it has no slabs of it now.
  [[nodiscard]] std::string WhatIsWrongIn(uint64_t lease, uint64_t value);
  void Forget(uint64_t lease);

 private:
  struct Piece {
    base::UniqueFd fd;
    uint64_t bytes;
  };

  Core* const core_;
  base::Mutex slabs_mu_;
  std::map<uint64_t, std::vector<Piece>> slabs_ ABSL_GUARDED_BY(slabs_mu_);
};

// The memory of a device, and how much of it is really in use.
class CountedAllocator final : public device::Allocator {
 public:
  CountedAllocator(std::unique_ptr<device::Allocator> real,
                   std::atomic<uint64_t>* in_use)
      : real_(std::move(real)), in_use_(in_use) {}

  [[nodiscard]] const device::DeviceInfo& info() const override {
    return real_->info();
  }
  absl::StatusOr<device::CreatedSlab> Create(uint64_t bytes) override;
  absl::StatusOr<device::SlabKey> Import(const device::ShareableHandle& handle,
                                         uint64_t bytes) override {
    return real_->Import(handle, bytes);
  }
  absl::Status Destroy(device::SlabKey key) override;
  absl::StatusOr<uint64_t> FreeBytes() override { return real_->FreeBytes(); }
  [[nodiscard]] std::vector<device::HeldSlab> Held() const override {
    return real_->Held();
  }
  absl::StatusOr<std::vector<device::ProcessUsage>> Processes() override {
    return real_->Processes();
  }

 private:
  const std::unique_ptr<device::Allocator> real_;
  std::atomic<uint64_t>* const in_use_;
  std::map<device::SlabKey, uint64_t> slabs_;
};

// How often the machine was asked what memory it has to spare, and which of the
// answers is that it has none.
struct SpareMemory {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> first{1};
  std::atomic<uint64_t> last{0};
};

class FaultWorld final : public CoreFixture {
 public:
  static constexpr uint64_t kSlab = 4 * kMiB;
  static constexpr uint64_t kPool = 6 * kSlab;
  static constexpr uint64_t kDevice = 7 * kSlab;  // the rest is headroom

  // The parts that can fail outlive the core.
  FaultWorld(FaultyKeeper* its_keeper, SpareMemory* its_memory);
  void TestBody() override {}

  // Two tenants lease, park, are evicted, restored, released and killed. All
  // calls are answered, whatever fails. False: one was not.
  [[nodiscard]] bool Live();
  // Nothing fails any more: what was kept comes back as it was, and everybody
  // is served. Not on a device that is lost.
  [[nodiscard]] bool GoOn();
  // Everybody leaves. Empty, or where books and world differ.
  [[nodiscard]] std::string EndAndCompare();

  device::FaultyAllocator* device = nullptr;
  FaultyKeeper* const keeper_faults;
  SpareMemory* const spare;
  device::CopyFaults& out() { return faults_out; }
  device::CopyFaults& in() { return faults_in; }
  AdvancedClock& the_clock() { return clock; }
  bool granted_both = false;  // in Live, what needed an eviction
  bool restored = false;

 private:
  std::shared_ptr<HonestPeer> Join(const std::string& tenant);
  // Waits, and has time pass faster and faster.
  v1::BrokerMessage AnswerOf(HonestPeer* peer, uint64_t request);
  [[nodiscard]] uint64_t Progress() const;
  // 0: it was refused.
  uint64_t Lease(HonestPeer* peer, uint64_t bytes);
  [[nodiscard]] bool IsSettled();
  [[nodiscard]] std::string Compare();

  std::atomic<uint64_t> in_use_{0};
  std::shared_ptr<HonestPeer> owner_;
  uint64_t owners_lease_ = 0;
  bool unanswered_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_FAULT_WORLD_H_
