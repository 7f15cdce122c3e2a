#include "broker/core/device_tasks.h"

#include <fcntl.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/core/in_process_keeper.h"
#include "device/devices.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device/faulty_allocator.h"

namespace gmb::broker {
namespace {

using ::gmb::device::FaultyAllocator;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kSlab = uint64_t{2} << 20;
constexpr uint64_t kCapacity = 16 * kSlab;

// A device with slabs of a broker that is dead, and what a keeper has of them.
class DeviceTasksTest : public ::testing::Test {
 protected:
  static std::unique_ptr<device::Allocator> OpenDevice() {
    return *device::OpenHostAllocator({.capacity_bytes = kCapacity});
  }

  // The last broker made it; the keeper has it.
  SlabRecord Keep(SlabId id, uint64_t bytes) {
    absl::StatusOr<device::CreatedSlab> made = last_->Create(bytes);
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(keeper_.Put(id, std::move(made->exported)).ok());
    return {.id = id, .bytes = bytes};
  }
  std::unique_ptr<DeviceTasks> Adopt(const std::vector<SlabRecord>& kept) {
    last_.reset();  // it is dead
    absl::StatusOr<std::unique_ptr<DeviceTasks>> tasks =
        DeviceTasks::Create(OpenDevice(), &keeper_, &slab_ids_, kept);
    EXPECT_TRUE(tasks.ok()) << tasks.status();
    return *std::move(tasks);
  }
  // Slabs 1 and 2; the first import is refused once.
  absl::StatusOr<std::unique_ptr<DeviceTasks>> AdoptTwo(
      const absl::Status& refused_once) {
    const std::vector<SlabRecord> kept = {Keep(1, kSlab), Keep(2, kSlab)};
    auto device = std::make_unique<FaultyAllocator>(OpenDevice());
    device->FailOnce(FaultyAllocator::Op::kImport, 1, refused_once);
    last_.reset();
    return DeviceTasks::Create(std::move(device), &keeper_, &slab_ids_, kept);
  }
  // Destroys it, as when its lease ends.
  static DeviceResult Destroy(DeviceTasks* tasks, const Slab& slab) {
    return tasks->Do({DestroyJob{.slabs = {{slab, quota::TenantId{1}}}}});
  }

  std::unique_ptr<device::Allocator> last_ = OpenDevice();
  InProcessKeeper keeper_;
  std::atomic<SlabId> slab_ids_ = 1;
};

TEST_F(DeviceTasksTest, KeptSlabsAreAliveAndPartOfTheBaseline) {
  const SlabRecord one = Keep(7, kSlab);
  const SlabRecord two = Keep(9, 3 * kSlab);
  const std::unique_ptr<DeviceTasks> tasks = Adopt({one, two});
  ASSERT_EQ(tasks->imported().size(), 2);
  EXPECT_EQ(tasks->imported().at(9).bytes, 3 * kSlab);
  EXPECT_TRUE(tasks->import_errors().empty());
  EXPECT_EQ(tasks->baseline_bytes(), kCapacity);
  const DeviceResult read = tasks->Do({AuditJob{}});
  EXPECT_EQ(read.reading.free_bytes, kCapacity - 4 * kSlab);
  EXPECT_EQ(read.reading.outside_bytes, 0);
  EXPECT_EQ(read.reading.risen_bytes, 0);
  const DeviceResult gone = Destroy(tasks.get(), tasks->imported().at(9));
  ASSERT_TRUE(gone.status.ok()) << gone.status;
  EXPECT_EQ(gone.reading.free_bytes, kCapacity - kSlab);
  EXPECT_TRUE(gone.reading.unreturned.empty());
  EXPECT_THAT(keeper_.List(), UnorderedElementsAre(7));
}

TEST_F(DeviceTasksTest, AKeptSlabThatIsHeldAfterItsEndIsItsHoldersDebt) {
  const SlabRecord kept = Keep(7, kSlab);
  const base::UniqueFd held(fcntl(
      std::get<base::UniqueFd>(*keeper_.Get(7)).get(), F_DUPFD_CLOEXEC, 0));
  const std::unique_ptr<DeviceTasks> tasks = Adopt({kept});
  const DeviceResult gone = Destroy(tasks.get(), tasks->imported().at(7));
  EXPECT_EQ(gone.reading.unreturned.at(quota::TenantId{1}), kSlab);
}

// Where all that is asked for is ready, nothing else would tell.
TEST_F(DeviceTasksTest, AFreeFigureThatSaysThatTheDeviceIsLostIsBelieved) {
  auto faulty = std::make_unique<FaultyAllocator>(OpenDevice());
  FaultyAllocator* const faults = faulty.get();
  const auto tasks =
      DeviceTasks::Create(std::move(faulty), &keeper_, &slab_ids_);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  using Op = FaultyAllocator::Op;
  faults->FailOnce(Op::kFreeBytes, 1, absl::InternalError("a moment"));
  EXPECT_TRUE((*tasks)->Do({AuditJob{}}).status.ok());
  faults->FailOnce(Op::kFreeBytes, 1, absl::UnavailableError("off the bus"));
  EXPECT_TRUE(absl::IsUnavailable((*tasks)->Do({AuditJob{}}).status));
}

// A keeper that lives and does not answer, when told so.
class SilentKeeper : public InProcessKeeper {
 public:
  bool KeepsRemoved() const override { return silent; }
  bool silent = false;
};

// A destroyed slab does not come back, so no ready slab is destroyed, for
// whatever.
TEST_F(DeviceTasksTest, ReadySlabsAreSparedWhileTheKeeperIsSilent) {
  SilentKeeper keeper;
  const auto tasks = DeviceTasks::Create(OpenDevice(), &keeper, &slab_ids_);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  const DeviceResult made =
      (*tasks)->Do({RefillJob{.slabs = {{}, {kSlab, kSlab, kSlab}}}});
  ASSERT_EQ(made.created.size(), 3);
  EXPECT_FALSE(made.reading.destroyed_is_kept);
  const Condemned ready{made.created[0], std::nullopt};
  const Condemned held{made.created[1], quota::TenantId{1}};
  keeper.silent = true;
  const DeviceResult tail = (*tasks)->Do({PrepareJob{
      .lease = quota::LeaseId{1}, .slabs = {{ready, held}, {kSlab, kSlab}}}});
  EXPECT_TRUE(tail.reading.destroyed_is_kept);
  EXPECT_TRUE(absl::IsResourceExhausted(tail.status)) << tail.status;
  EXPECT_THAT(std::string(tail.status.message()), HasSubstr("keeper"));
  EXPECT_EQ(tail.created.size(), 1) << "of what a tenant had held";
  ASSERT_EQ(tail.spared.size(), 1);
  EXPECT_EQ(tail.spared[0].slab.id, ready.slab.id);
  const DeviceResult shrunk = (*tasks)->Do({RefillJob{.slabs = {{ready}, {}}}});
  EXPECT_EQ(shrunk.spared.size(), 1);
  EXPECT_EQ(shrunk.destroyed_bytes, 0);
  // One that must not be kept is not.
  const DeviceResult gone = (*tasks)->Do({DestroyJob{.slabs = {ready}}});
  EXPECT_EQ(gone.destroyed_bytes, kSlab);
}

// It has codes of its own.
TEST_F(DeviceTasksTest, AKeeperThatRefusesIsNoDeviceThatIsLostOrFull) {
  keeper_.Put(1, device::IpcHandle{}).IgnoreError();  // the next slab's name
  const auto tasks = DeviceTasks::Create(OpenDevice(), &keeper_, &slab_ids_);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  const DeviceResult made = (*tasks)->Do({RefillJob{.slabs = {{}, {kSlab}}}});
  EXPECT_TRUE(absl::IsInternal(made.status)) << made.status;
  EXPECT_THAT(std::string(made.status.message()), HasSubstr("kept"));
  EXPECT_EQ(made.reading.free_bytes, kCapacity);
}

TEST_F(DeviceTasksTest, NoNewSlabHasTheNameOfAKeptOne) {
  const SlabRecord one = Keep(41, kSlab);
  const SlabRecord two = Keep(12, kSlab);
  const std::unique_ptr<DeviceTasks> tasks = Adopt({one, two});
  const DeviceResult made = tasks->Do({RefillJob{.slabs = {{}, {kSlab}}}});
  ASSERT_EQ(made.created.size(), 1) << made.status;
  EXPECT_EQ(made.created[0].id, 42);
}

TEST_F(DeviceTasksTest, SlabsThatCanNotBeImportedAreNamedAndTheRestIsThere) {
  const SlabRecord good = Keep(1, kSlab);
  SlabRecord wrong_size = Keep(2, kSlab);
  wrong_size.bytes = 2 * kSlab;
  const SlabRecord not_kept{.id = 30, .bytes = kSlab};
  const std::unique_ptr<DeviceTasks> tasks =
      Adopt({good, wrong_size, not_kept});
  EXPECT_EQ(tasks->imported().size(), 1);
  EXPECT_TRUE(tasks->imported().contains(1));
  ASSERT_EQ(tasks->import_errors().size(), 2);
  EXPECT_TRUE(absl::IsInvalidArgument(tasks->import_errors().at(2)));
  EXPECT_TRUE(absl::IsNotFound(tasks->import_errors().at(30)));
  EXPECT_EQ(tasks->baseline_bytes(), kCapacity);
  EXPECT_EQ(slab_ids_, 31);
}

TEST_F(DeviceTasksTest, ASlabThatIsRecordedTwiceIsAnError) {
  const SlabRecord kept = Keep(5, kSlab);
  const std::unique_ptr<DeviceTasks> tasks = Adopt({kept, kept});
  EXPECT_EQ(tasks->imported().size(), 1);
  EXPECT_THAT(std::string(tasks->import_errors().at(5).message()),
              HasSubstr("more than once"));
}

TEST_F(DeviceTasksTest, AnImportThatIsRefusedForGoodCostsThatSlabAlone) {
  const auto wrong = absl::InvalidArgumentError("not ours");
  const auto tasks = AdoptTwo(/*refused_once=*/wrong);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_EQ((*tasks)->import_errors().at(1), wrong);
  EXPECT_TRUE((*tasks)->imported().contains(2));
}

TEST_F(DeviceTasksTest, AnImportThatIsRefusedForAMomentIsTriedAgain) {
  const auto tasks = AdoptTwo(
      /*refused_once=*/absl::ResourceExhaustedError("no file is free"));
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_TRUE((*tasks)->import_errors().empty());
  EXPECT_TRUE((*tasks)->imported().contains(1));
  EXPECT_TRUE((*tasks)->imported().contains(2));
}

// Memory of the last broker's, which a client holds still, and which is less
// than it said by now.
TEST_F(DeviceTasksTest, WhatIsOwedToTheLastBrokerIsOwedToThisOne) {
  auto device = std::make_unique<FaultyAllocator>(OpenDevice());
  FaultyAllocator* const others = device.get();
  others->SetOutsideBytes(5 * kSlab);
  last_.reset();
  auto tasks = DeviceTasks::Create(std::move(device), &keeper_, &slab_ids_, {},
                                   kCapacity);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  const quota::TenantId a{1};
  const quota::TenantId b{2};
  const DeviceReading first =
      (*tasks)
          ->Do({AuditJob{.clients = {},
                         .inherited = {{a, 2 * kSlab}, {b, kSlab}}}})
          .reading;
  EXPECT_EQ(first.unreturned.at(a), 2 * kSlab);
  EXPECT_EQ(first.unreturned.at(b), kSlab);
  EXPECT_EQ(first.outside_bytes, 2 * kSlab);
  others->SetOutsideBytes(kSlab);
  const DeviceReading later = (*tasks)->Do({AuditJob{}}).reading;
  EXPECT_EQ(later.outside_bytes + (later.unreturned.empty() ? 0 : kSlab),
            kSlab);
}

// Page-locks when it is told to.
class SlowLocker final : public device::PageLocker {
 public:
  absl::Status Lock(void*, uint64_t) override {
    const base::MutexLock lock(&mu_);
    ++begun_;
    changed_.NotifyAll();
    while (may_end_ < begun_) changed_.Wait(&mu_);
    return absl::OkStatus();
  }
  void Unlock(void*) override {}
  void AwaitBegun(int count) {
    const base::MutexLock lock(&mu_);
    while (begun_ < count) changed_.Wait(&mu_);
  }
  void EndOne() {
    const base::MutexLock lock(&mu_);
    ++may_end_;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int begun_ ABSL_GUARDED_BY(mu_) = 0;
  int may_end_ ABSL_GUARDED_BY(mu_) = 0;
};

// Memory that the driver takes while it page-locks (2 MiB a GiB, on an H200) is
// not held by whoever had the slabs that are destroyed meanwhile.
TEST_F(DeviceTasksTest, WhatPageLockingTakesIsNobodysDebt) {
  const std::vector<SlabRecord> kept = {Keep(1, kSlab), Keep(2, 5 * kSlab),
                                        Keep(3, kSlab), Keep(4, 2 * kSlab)};
  auto locker = std::make_unique<SlowLocker>();
  SlowLocker* const locks = locker.get();
  auto pool = device::HostPool::Create(
      {.bytes = 3 * kSlab, .chunk_bytes = kSlab, .threads = 1},
      std::move(locker));
  ASSERT_TRUE(pool.ok()) << pool.status();
  auto device = std::make_unique<FaultyAllocator>(OpenDevice());
  FaultyAllocator* const thief = device.get();
  last_.reset();
  auto made =
      DeviceTasks::Create(std::move(device), &keeper_, &slab_ids_, kept);
  ASSERT_TRUE(made.ok()) << made.status();
  DeviceTasks* const tasks = made->get();
  tasks->SetHostPool(pool->get());
  const auto destroy_and_take = [&](SlabId slab) {
    thief->StealNextDestroyed(1);
    return Destroy(tasks, tasks->imported().at(slab)).reading;
  };
  const quota::TenantId holder{1};
  locks->AwaitBegun(1);
  locks->EndOne();
  locks->AwaitBegun(2);
  EXPECT_TRUE(destroy_and_take(1).unreturned.empty());
  const DeviceReading much = destroy_and_take(2);
  EXPECT_EQ(much.unreturned.at(holder), 3 * kSlab) << "it can't be all of that";
  EXPECT_EQ(much.outside_bytes, 3 * kSlab);
  locks->EndOne();
  locks->AwaitBegun(3);
  locks->EndOne();
  while (!(*pool)->progress().done) std::this_thread::yield();
  EXPECT_EQ(destroy_and_take(4).unreturned.at(holder), 5 * kSlab)
      << "nothing is locked any more";
}

TEST_F(DeviceTasksTest, TheEndDestroysWhatIsAliveAndWhatIsKept) {
  std::unique_ptr<DeviceTasks> tasks = Adopt({Keep(1, kSlab)});
  tasks.reset();
  EXPECT_TRUE(keeper_.List().empty());
}

TEST_F(DeviceTasksTest, WhatIsLeftAloneIsThereForTheNext) {
  std::unique_ptr<DeviceTasks> tasks = Adopt({Keep(1, kSlab)});
  const DeviceResult made = tasks->Do({RefillJob{.slabs = {{}, {kSlab}}}});
  ASSERT_EQ(made.created.size(), 1) << made.status;
  tasks->LeaveAlone();
  tasks.reset();
  tasks = Adopt(
      {{.id = 1, .bytes = kSlab}, {.id = made.created[0].id, .bytes = kSlab}});
  EXPECT_EQ(tasks->imported().size(), 2);
}

}  // namespace
}  // namespace gmb::broker
