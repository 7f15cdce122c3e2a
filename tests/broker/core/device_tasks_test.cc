#include "broker/core/device_tasks.h"

#include <fcntl.h>

#include <utility>
#include <vector>

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

TEST_F(DeviceTasksTest, ADeviceThatFailsAtTheFirstImportKeepsTheOthers) {
  const std::vector<SlabRecord> kept = {Keep(1, kSlab), Keep(2, kSlab)};
  auto faulty = std::make_unique<FaultyAllocator>(OpenDevice());
  faulty->FailOnce(FaultyAllocator::Op::kImport, 1,
                   absl::UnavailableError("lost"));
  last_.reset();
  const auto tasks =
      DeviceTasks::Create(std::move(faulty), &keeper_, &slab_ids_, kept);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_EQ((*tasks)->import_errors().at(1), absl::UnavailableError("lost"));
  EXPECT_TRUE((*tasks)->imported().contains(2));
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
