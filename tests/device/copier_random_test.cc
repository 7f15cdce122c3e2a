#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "broker/hostpool/host_books.h"
#include "broker/hostpool/slab_rooms.h"
#include "tests/device/copier_contract.h"
#include "tests/sanitized.h"

// Random sequences of what a broker does with leases: grow, write, evict, back
// ahead, restore, release, kill in the middle; several copies at a time, with
// faults and cancellations. Contents are compared after every restore.

namespace gmb::device {
namespace {

using broker::HostBooks;

class RandomBroker {
 public:
  // The parts of a fixture that a sequence works with.
  struct Devices {
    Allocator* allocator;
    Mapper* mapper;
    HostPool* pool;
    Copier* copier;
  };

  RandomBroker(const Devices& devices, unsigned seed)
      : devices_(devices), random_(seed), books_(devices.pool->size_bytes()) {}

  void Step() {
    if (leases_.size() < 5 && Below(3) == 0) return Grow();
    if (leases_.empty()) return;
    auto chosen = leases_.begin();
    std::advance(chosen, Below(leases_.size()));
    Lease& lease = *chosen->second;
    if (lease.flight != Flight::kNone) return Settle(&lease);
    if (Below(8) == 0) return Release(chosen->first);
    lease.evicted ? Restore(&lease) : UseOrCopyOut(&lease);
  }

  // Everything settles, is restored, compared and released.
  void End() {
    for (auto& [id, lease] : leases_) {
      while (lease->flight != Flight::kNone || lease->evicted) {
        if (lease->flight == Flight::kNone) Restore(lease.get());
        Settle(lease.get());
        ASSERT_FALSE(testing::Test::HasFailure());
      }
    }
    while (!leases_.empty()) Release(leases_.begin()->first);
    EXPECT_EQ(books_.total().reserved_bytes, 0u);
    EXPECT_EQ(books_.total().placed_bytes, 0u);
  }

  uint64_t restores() const { return restores_; }
  uint64_t failures() const { return failures_; }

 private:
  enum class Flight { kNone, kEvicting, kBacking, kRestoring };
  struct Lease {
    quota::LeaseId id;
    uint32_t contents = 0;  // the seed of what was written last
    bool evicted = false;
    Flight flight = Flight::kNone;
    void* address = nullptr;
    std::unique_ptr<TestLease> memory;
    std::unique_ptr<CopyAnswers> answers;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Grow() {
    std::vector<uint64_t> slab_bytes;
    for (uint64_t i = 0; i < 1 + Below(3); ++i) {
      slab_bytes.push_back((1 + Below(2)) * kSlab);
    }
    auto lease = std::make_unique<Lease>();
    lease->id = {++last_id_};
    lease->memory = std::make_unique<TestLease>(
        devices_.allocator, devices_.mapper, std::move(slab_bytes));
    (void)books_.Reserve({1 + Below(2)}, lease->id, lease->memory->bytes());
    ASSERT_OK(lease->memory->CreateAll());
    ASSERT_OK(lease->memory->Map());
    lease->address = lease->memory->address();
    Write(lease.get());
    leases_.emplace(lease->id, std::move(lease));
  }

  void Write(Lease* lease) {
    lease->contents = ++last_contents_;
    books_.MarkUntrue(lease->id);
    ASSERT_OK(lease->memory->Write(lease->contents));
  }

  void UseOrCopyOut(Lease* lease) {
    switch (Below(4)) {
      case 0:
        return Write(lease);
      case 1:
        return CopyOut(lease, Flight::kBacking);
      default:
        if (!books_.HasRoom(lease->id)) return;  // its bytes are hard
        ASSERT_OK(lease->memory->Unmap());
        if (books_.TrueCopy(lease->id) != nullptr) return Drop(lease);
        return CopyOut(lease, Flight::kEvicting);
    }
  }

  void CopyOut(Lease* lease, Flight flight) {
    const std::vector<HostExtent>& place = books_.Place(lease->id);
    if (place.empty()) return;
    Push(CopyDirection::kOut, lease, place);
    lease->flight = flight;
  }

  void Drop(Lease* lease) {
    ASSERT_OK(lease->memory->DestroyAll());
    lease->evicted = true;
  }

  void Restore(Lease* lease) {
    ASSERT_OK(lease->memory->CreateAll());
    const std::vector<HostExtent>* const copy = books_.TrueCopy(lease->id);
    ASSERT_NE(copy, nullptr);
    Push(CopyDirection::kIn, lease, *copy);
    lease->flight = Flight::kRestoring;
  }

  void Push(CopyDirection direction, Lease* lease,
            const std::vector<HostExtent>& place) {
    lease->answers = std::make_unique<CopyAnswers>();
    const auto rooms = broker::SlabRooms(place, lease->memory->slab_bytes());
    ASSERT_EQ(rooms.size(), lease->memory->num_slabs());
    for (size_t i = 0; i < rooms.size(); ++i) {
      devices_.copier->Push({.direction = direction,
                             .group = lease->id.value,
                             .slab = lease->memory->Shared(i),
                             .slab_bytes = lease->memory->slab_bytes()[i],
                             .room = rooms[i],
                             .done = lease->answers->Expect(i)});
    }
    devices_.copier->Wake();
    if (Below(10) == 0) devices_.copier->Cancel(lease->id.value);
  }

  void Settle(Lease* lease) {
    const Flight flight = std::exchange(lease->flight, Flight::kNone);
    const absl::Status status = lease->answers->WaitForAll();
    if (!status.ok()) ++failures_;
    if (flight == Flight::kRestoring) {
      if (!status.ok()) {
        // The host copy is what counts; the slabs may hold anything.
        ASSERT_OK(lease->memory->DestroyAll());
        return;
      }
      ++restores_;
      lease->evicted = false;
      if (Below(2) == 0) books_.MarkUntrue(lease->id);
      return Check(lease, /*map=*/true);
    }
    if (!status.ok()) {
      books_.MarkUntrue(lease->id);
      return Check(lease, /*map=*/flight == Flight::kEvicting);
    }
    books_.MarkTrue(lease->id);
    if (flight == Flight::kEvicting) return Drop(lease);
    Check(lease, /*map=*/false);
  }

  void Check(Lease* lease, bool map) {
    if (map) {
      ASSERT_OK(lease->memory->Map());
    }
    EXPECT_EQ(lease->memory->address(), lease->address);
    EXPECT_EQ(lease->memory->CountWrongGranules(lease->contents), 0u)
        << "lease " << lease->id.value;
  }

  // As a client that is killed: what is in flight is cancelled and waited for.
  void Release(quota::LeaseId id) {
    Lease& lease = *leases_.at(id);
    if (lease.flight != Flight::kNone) {
      devices_.copier->Cancel(id.value);
      (void)lease.answers->Wait();
    }
    ASSERT_OK(lease.memory->Unmap());
    ASSERT_OK(lease.memory->DestroyAll());
    books_.Release(id);
    leases_.erase(id);
  }

  const Devices devices_;
  std::mt19937 random_;
  HostBooks books_;
  std::map<quota::LeaseId, std::unique_ptr<Lease>> leases_;
  uint64_t last_id_ = 0;
  uint32_t last_contents_ = 0;
  uint64_t restores_ = 0;
  uint64_t failures_ = 0;
};

class CopierRandom : public CopierContract {
 protected:
  [[nodiscard]] static unsigned sequences() {
    return static_cast<unsigned>(FewerIfSanitized(100));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, CopierRandom,
                         testing::Values(DeviceKind::kHost, DeviceKind::kVmm),
                         KindName);

TEST_P(CopierRandom, ContentsSurviveRandomSequences) {
  const uint64_t free_bytes = FreeBytes();
  uint64_t restores = 0;
  uint64_t failures = 0;
  for (unsigned seed = 1; seed <= sequences(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    MakeCopier(seed);
    const uint32_t per_mille = seed % 2 == 0 ? 10 : 0;
    for (CopyFaults& faults : faults_) faults.per_mille = per_mille;
    RandomBroker broker(
        {allocator_.get(), mapper_.get(), pool_.get(), copier_.get()}, seed);
    for (int i = 0; i < 20; ++i) {
      broker.Step();
      ASSERT_FALSE(HasFailure()) << "step " << i;
    }
    broker.End();
    ASSERT_FALSE(HasFailure());
    restores += broker.restores();
    failures += broker.failures();
  }
  // The sequences are worth something.
  EXPECT_GT(restores, sequences());
  EXPECT_GT(failures, sequences() / 5);
  EXPECT_TRUE(WaitForFree(free_bytes));
}

}  // namespace
}  // namespace gmb::device
