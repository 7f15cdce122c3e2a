#include "device/hostpool/host_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "device/hostpool/machine_memory.h"

namespace gmb::device {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Records what is page-locked, and asks the test what to answer.
class RecordingLocker final : public PageLocker {
 public:
  struct Pieces {
    std::mutex mutex;
    std::vector<std::pair<void*, uint64_t>> calls;  // of Lock, in order
    std::set<void*> locked;
  };
  using Answer = std::function<absl::Status(size_t call)>;

  RecordingLocker(Pieces* pieces, Answer answer)
      : pieces_(pieces), answer_(std::move(answer)) {}

  absl::Status Lock(void* start, uint64_t bytes) override {
    size_t call = 0;
    {
      const std::lock_guard<std::mutex> lock(pieces_->mutex);
      call = pieces_->calls.size();
      pieces_->calls.emplace_back(start, bytes);
    }
    absl::Status status = answer_(call);
    if (status.ok()) {
      const std::lock_guard<std::mutex> lock(pieces_->mutex);
      pieces_->locked.insert(start);
    }
    return status;
  }
  void Unlock(void* start) override {
    const std::lock_guard<std::mutex> lock(pieces_->mutex);
    EXPECT_EQ(pieces_->locked.erase(start), 1u);
  }

 private:
  Pieces* const pieces_;
  const Answer answer_;
};

absl::Status Always(size_t) { return absl::OkStatus(); }

// A gate that a test opens when it likes.
class Latch {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::unique_ptr<HostPool> MakePool(
    uint64_t bytes, std::unique_ptr<PageLocker> locker = nullptr) {
  auto pool =
      HostPool::Create({.bytes = bytes, .chunk_bytes = 4 * kMiB, .threads = 1},
                       std::move(locker));
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

// The flags that the kernel shows for the mapping that starts at `start`.
std::string MappingFlags(const char* start) {
  std::ifstream smaps("/proc/self/smaps");
  const std::string name =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(start)), "-");
  bool found = false;
  for (std::string line; std::getline(smaps, line);) {
    found = found || line.rfind(name, 0) == 0;
    if (found && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(HostPool, MemoryIsZeroWritableAndOfTheSizeAskedFor) {
  const auto pool = MakePool(10 * kMiB);
  EXPECT_EQ(pool->size_bytes(), 10 * kMiB);
  ASSERT_TRUE(pool->AwaitPrepared({0, 10 * kMiB}).ok());
  for (uint64_t i = 0; i < 10 * kMiB; i += 4096) ASSERT_EQ(*pool->At(i), 0);
  std::memset(pool->At(0), 0x5A, 10 * kMiB);
  EXPECT_EQ(*pool->At(10 * kMiB - 1), 0x5A);
  const HostPool::Progress progress = pool->progress();
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.bytes, 10 * kMiB);
  EXPECT_EQ(progress.prepared_bytes, 10 * kMiB);
  EXPECT_EQ(progress.locked_bytes, 0u);
  EXPECT_EQ(progress.problem, "");
}

TEST(HostPool, SaysWhichPagesItHasAndHowToGetLargerOnes) {
  const auto pool = MakePool(4 * kMiB);
  EXPECT_NE(std::string(PageKindName(pool->page_kind())), "unknown");
  if (pool->page_kind() == PageKind::kSmall) {
    EXPECT_THAT(pool->page_note(), HasSubstr("nr_hugepages"));
  } else {
    EXPECT_EQ(pool->page_note(), "");
  }
}

TEST(HostPool, IsKeptOutOfCoreDumpsAndNotInherited) {
  const auto pool = MakePool(4 * kMiB);
  const std::string flags = MappingFlags(pool->At(0));
  EXPECT_THAT(flags, HasSubstr(" dd ")) << "MADV_DONTDUMP";
  EXPECT_THAT(flags, HasSubstr(" dc ")) << "MADV_DONTFORK";
}

// The fd that a keeper has of the pool.
base::UniqueFd KeptOf(const HostPool& pool) {
  return base::UniqueFd(fcntl(pool.fd(), F_DUPFD_CLOEXEC, 0));
}

TEST(HostPool, AKeptOneHasItsContentsAndIsPreparedAgain) {
  base::UniqueFd kept;
  PageKind kind = PageKind::kSmall;
  {
    const auto pool = MakePool(10 * kMiB);
    ASSERT_TRUE(pool->AwaitPrepared({0, 10 * kMiB}).ok());
    std::memset(pool->At(0), 0x5A, 10 * kMiB);
    kept = KeptOf(*pool);
    kind = pool->page_kind();
  }
  RecordingLocker::Pieces pieces;
  const auto pool =
      HostPool::Create({.bytes = 10 * kMiB,
                        .chunk_bytes = 4 * kMiB,
                        .threads = 1,
                        .kept = std::move(kept)},
                       std::make_unique<RecordingLocker>(&pieces, Always));
  ASSERT_TRUE(pool.ok()) << pool.status();
  ASSERT_TRUE((*pool)->AwaitPrepared({0, 10 * kMiB}).ok());
  EXPECT_EQ((*pool)->progress().locked_bytes, 10 * kMiB);
  for (uint64_t i = 0; i < 10 * kMiB; ++i) ASSERT_EQ(*(*pool)->At(i), 0x5A);
  EXPECT_EQ((*pool)->page_kind(), kind);
  const std::string flags = MappingFlags((*pool)->At(0));
  EXPECT_THAT(flags, HasSubstr(" dd ")) << "MADV_DONTDUMP";
  EXPECT_THAT(flags, HasSubstr(" dc ")) << "MADV_DONTFORK";
}

TEST(HostPool, AKeptOneOfAnotherSizeIsRefusedWithBothSizes) {
  const auto pool = MakePool(10 * kMiB);
  for (const uint64_t bytes : {8 * kMiB, 12 * kMiB}) {
    const auto adopted =
        HostPool::Create({.bytes = bytes, .kept = KeptOf(*pool)}, nullptr);
    EXPECT_EQ(adopted.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(adopted.status().message()),
        testing::AllOf(HasSubstr("10485760"), HasSubstr(absl::StrCat(bytes))));
  }
}

TEST(HostPool, WhatCouldBeShrunkIsNoKeptPool) {
  base::UniqueFd memfd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), 4 * kMiB), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  base::UniqueFd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (base::UniqueFd* kept : {&memfd, &null_device}) {
    const auto adopted = HostPool::Create(
        {.bytes = 4 * kMiB, .kept = std::move(*kept)}, nullptr);
    EXPECT_EQ(adopted.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// A machine of which the test says what it has to spare.
struct Spare {
  std::atomic<uint64_t> bytes = 64 * kMiB;

  [[nodiscard]] HostPool::Options Of(uint64_t pool_bytes) {
    return {.bytes = pool_bytes,
            .chunk_bytes = 4 * kMiB,
            .threads = 1,
            .kept = {},
            .on_demand = true,
            .ahead_bytes = 4 * kMiB,
            .available = [this]() -> absl::StatusOr<AvailableMemory> {
              return AvailableMemory{bytes, "the test"};
            }};
  }
};

bool AwaitDone(const HostPool& pool) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < until) {
    if (pool.progress().done) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

TEST(HostPoolOnDemand, TakesWhatIsWantedAndSomeAheadAndNothingAtTheStart) {
  Spare spare;
  const auto pool = HostPool::Create(spare.Of(40 * kMiB), nullptr);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE((*pool)->progress().done);
  EXPECT_NE((*pool)->page_kind(), PageKind::kHugetlb);
  struct stat before {};
  ASSERT_EQ(fstat((*pool)->fd(), &before), 0);
  EXPECT_EQ(before.st_blocks, 0) << "no page is in use";
  ASSERT_TRUE((*pool)->AwaitPrepared({5 * kMiB, kMiB}).ok());
  ASSERT_TRUE(AwaitDone(**pool));
  // The chunks at 4 and 8 MiB, and the one before them.
  EXPECT_EQ((*pool)->progress().prepared_bytes, 12 * kMiB);
  ASSERT_TRUE((*pool)->AwaitPrepared({0, 40 * kMiB}).ok());
  EXPECT_EQ((*pool)->progress().prepared_bytes, 40 * kMiB);
}

TEST(HostPoolOnDemand, WhatTheMachineCannotSpareIsTriedAgainWhenItIsWanted) {
  Spare spare;
  spare.bytes = 7 * kMiB;  // less than two chunks
  const auto pool = HostPool::Create(spare.Of(8 * kMiB), nullptr);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const absl::Status refused = (*pool)->AwaitPrepared({0, kMiB});
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("7 MiB are available"));
  ASSERT_TRUE(AwaitDone(**pool));
  EXPECT_THAT((*pool)->progress().problem, HasSubstr("the test"));
  EXPECT_EQ((*pool)->progress().prepared_bytes, 0u);
  spare.bytes = 8 * kMiB;
  EXPECT_TRUE((*pool)->AwaitPrepared({0, kMiB}).ok());
  EXPECT_EQ((*pool)->progress().problem, "");
}

// Several threads look at what there is while others take it.
TEST(HostPoolOnDemand, ThreadsDoNotTakeTheSameMemory) {
  static constexpr uint64_t kMachine = 16 * kMiB;
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> fd = -1;
    HostPool::Options options = Spare().Of(40 * kMiB);
    options.threads = 4;
    options.available = [&fd]() -> absl::StatusOr<AvailableMemory> {
      struct stat info {};
      if (fstat(fd, &info) != 0) return absl::InternalError("fstat");
      const auto used = static_cast<uint64_t>(info.st_blocks) * 512;
      return AvailableMemory{kMachine - std::min(kMachine, used), "the test"};
    };
    const auto pool = HostPool::Create(std::move(options), nullptr);
    ASSERT_TRUE(pool.ok()) << pool.status();
    fd = (*pool)->fd();
    EXPECT_FALSE((*pool)->AwaitPrepared({0, 40 * kMiB}).ok());
    ASSERT_TRUE(AwaitDone(**pool));
    EXPECT_LE((*pool)->progress().prepared_bytes, kMachine - 4 * kMiB)
        << "a step leaves as much";
    EXPECT_EQ((*pool)->progress().failed_bytes, 0U);
  }
}

TEST(HostPoolOnDemand, KeptContentsAreReachedWhateverTheMachineHas) {
  Spare spare;
  base::UniqueFd kept;
  {
    const auto pool = HostPool::Create(spare.Of(12 * kMiB), nullptr);
    ASSERT_TRUE(pool.ok()) << pool.status();
    ASSERT_TRUE((*pool)->AwaitPrepared({0, 4 * kMiB}).ok());
    ASSERT_TRUE(AwaitDone(**pool));
    kept = KeptOf(**pool);
  }
  spare.bytes = 0;
  HostPool::Options options = spare.Of(12 * kMiB);
  options.kept = std::move(kept);
  const auto pool = HostPool::Create(std::move(options), nullptr);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE((*pool)->AwaitPrepared({0, 4 * kMiB}).ok());
  EXPECT_FALSE((*pool)->AwaitPrepared({8 * kMiB, 4 * kMiB}).ok());
}

// Its last process died while it prepared this chunk: the rest of it is memory
// that the machine has to spare first, and it is no failure for good.
TEST(HostPoolOnDemand, AKeptChunkThatWasHalfPreparedTakesMemoryLikeANewOne) {
  Spare spare;
  base::UniqueFd kept;
  {
    const auto pool = HostPool::Create(spare.Of(8 * kMiB), nullptr);
    ASSERT_TRUE(pool.ok()) << pool.status();
    std::memset((*pool)->At(0), 7, 2 * kMiB);
    kept = KeptOf(**pool);
  }
  spare.bytes = 0;
  HostPool::Options options = spare.Of(8 * kMiB);
  options.kept = std::move(kept);
  const auto pool = HostPool::Create(std::move(options), nullptr);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE(absl::IsResourceExhausted((*pool)->AwaitPrepared({0, kMiB})));
  EXPECT_EQ((*pool)->progress().failed_bytes, 0U);
  spare.bytes = 64 * kMiB;
  EXPECT_TRUE((*pool)->AwaitPrepared({0, 4 * kMiB}).ok());
  EXPECT_EQ((*pool)->At(2 * kMiB)[-1], 7) << "what it had is lost";
}

TEST(HostPool, BadSizesAreRefused) {
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, 3 * kMiB, UINT64_MAX, uint64_t{1} << 63}) {
    EXPECT_EQ(HostPool::Create({.bytes = bytes}, nullptr).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
  EXPECT_EQ(HostPool::Create({.bytes = 2 * kMiB, .chunk_bytes = kMiB}, nullptr)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HostPool, LargerThanTheMachinesMemoryIsRefusedWithWhatToDo) {
  const absl::StatusOr<AvailableMemory> available = ReadAvailableMemory();
  ASSERT_TRUE(available.ok()) << available.status();
  const uint64_t too_much =
      (available->bytes + 64 * kGiB) / (2 * kMiB) * (2 * kMiB);
  const auto pool = HostPool::Create({.bytes = too_much}, nullptr);
  EXPECT_EQ(pool.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(pool.status().message()),
              HasSubstr("make the host pool smaller"));
}

TEST(HostPool, EveryChunkIsPageLockedOnceAndUnlockedAtTheEnd) {
  RecordingLocker::Pieces pieces;
  {
    const auto pool =
        MakePool(10 * kMiB, std::make_unique<RecordingLocker>(&pieces, Always));
    ASSERT_TRUE(pool->AwaitPrepared({0, 10 * kMiB}).ok());
    EXPECT_EQ(pool->progress().locked_bytes, 10 * kMiB);
    EXPECT_TRUE(pool->progress().done);
    ASSERT_EQ(pieces.calls.size(), 3u);  // 4 + 4 + 2 MiB
    EXPECT_EQ(pieces.calls[0],
              std::make_pair(static_cast<void*>(pool->At(0)), 4 * kMiB));
    EXPECT_EQ(pieces.calls[2].second, 2 * kMiB);
  }
  EXPECT_TRUE(pieces.locked.empty());
}

TEST(HostPool, StartsBeforeAnythingIsPreparedAndWhatIsWantedComesNext) {
  RecordingLocker::Pieces pieces;
  Latch wished;
  const auto pool = MakePool(32 * kMiB, std::make_unique<RecordingLocker>(
                                            &pieces, [&wished](size_t call) {
                                              if (call == 0) wished.Wait();
                                              return absl::OkStatus();
                                            }));
  EXPECT_FALSE(pool->progress().done);
  EXPECT_EQ(pool->progress().locked_bytes, 0u);
  EXPECT_EQ(pool->progress().prepared_bytes, 0u);
  // The first chunk is in hand, or will be in a moment; then these come.
  pool->Want({21 * kMiB, 4 * kMiB});
  wished.Open();
  ASSERT_TRUE(pool->AwaitPrepared({0, 32 * kMiB}).ok());
  std::vector<uint64_t> order;
  for (const auto& [start, bytes] : pieces.calls) {
    const auto offset = static_cast<char*>(start) - pool->At(0);
    order.push_back(static_cast<uint64_t>(offset) / (4 * kMiB));
  }
  EXPECT_THAT(order,
              testing::AnyOf(testing::ElementsAre(0, 5, 6, 1, 2, 3, 4, 7),
                             testing::ElementsAre(5, 6, 0, 1, 2, 3, 4, 7)));
}

TEST(HostPool, MemoryThatCanNotBePageLockedIsUsedAndSaid) {
  RecordingLocker::Pieces pieces;
  const auto pool = MakePool(
      12 * kMiB, std::make_unique<RecordingLocker>(&pieces, [](size_t call) {
        return call == 1 ? absl::InternalError("no page-locking today")
                         : absl::OkStatus();
      }));
  ASSERT_TRUE(pool->AwaitPrepared({0, 12 * kMiB}).ok());
  const HostPool::Progress progress = pool->progress();
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.prepared_bytes, 12 * kMiB);
  EXPECT_EQ(progress.locked_bytes, 8 * kMiB);
  EXPECT_EQ(progress.failed_bytes, 0u);
  EXPECT_EQ(progress.problem, "no page-locking today");
}

TEST(HostPool, EndsInTheMiddleOfItsPreparation) {
  RecordingLocker::Pieces pieces;
  Latch first;
  auto pool = MakePool(64 * kMiB, std::make_unique<RecordingLocker>(
                                      &pieces, [&first](size_t call) {
                                        if (call == 0) first.Wait();
                                        return absl::OkStatus();
                                      }));
  std::thread ending([&] { pool.reset(); });
  first.Open();
  ending.join();
  EXPECT_TRUE(pieces.locked.empty());
}

TEST(HostPool, WhatLiesBeyondItsEndIsRefused) {
  const auto pool = MakePool(4 * kMiB);
  for (const HostExtent& piece :
       {HostExtent{0, 6 * kMiB}, HostExtent{4 * kMiB, 2 * kMiB},
        HostExtent{UINT64_MAX - kMiB, 2 * kMiB}, HostExtent{0, UINT64_MAX}}) {
    EXPECT_EQ(pool->AwaitPrepared(piece).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// A folder that stands for the root of a machine.
class MachineMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "gmb-memory-XXXXXX";
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
    Write("/proc/meminfo",
          "MemTotal:       1000 kB\nMemAvailable:    800 kB\nMemFree: 1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  uint64_t Bytes() {
    const auto available = ReadAvailableMemory(root_);
    EXPECT_TRUE(available.ok()) << available.status();
    source_ = available->source;
    return available->bytes;
  }

  std::string root_;
  std::string source_;
};

TEST_F(MachineMemory, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(Bytes(), 800u * 1024);
  EXPECT_THAT(source_, HasSubstr("/proc/meminfo"));
}

TEST_F(MachineMemory, IsLoweredByTheGroupsLimitLessWhatIsUsedForGood) {
  Write("/proc/self/cgroup", "0::/pod/broker\n");
  Write("/sys/fs/cgroup/pod/broker/memory.max", "500000\n");
  Write("/sys/fs/cgroup/pod/broker/memory.current", "200000\n");
  Write("/sys/fs/cgroup/pod/broker/memory.stat",
        "anon 100000\ninactive_file 50000\n");
  EXPECT_EQ(Bytes(), 350000u);
  EXPECT_THAT(source_, HasSubstr("pod/broker/memory.max"));
}

TEST_F(MachineMemory, IsLoweredByGroupsAboveToo) {
  Write("/proc/self/cgroup", "0::/pod/broker\n");
  Write("/sys/fs/cgroup/pod/broker/memory.max", "max\n");
  Write("/sys/fs/cgroup/pod/broker/memory.current", "200000\n");
  Write("/sys/fs/cgroup/pod/memory.max", "100000\n");
  Write("/sys/fs/cgroup/pod/memory.current", "100001\n");
  EXPECT_EQ(Bytes(), 0u);
}

TEST_F(MachineMemory, OfAContainerIsAtTheTopOfWhatIsMountedThere) {
  Write("/proc/self/cgroup", "0::/kubepods/pod1/not-mounted-here\n");
  Write("/sys/fs/cgroup/memory.max", "300000\n");
  Write("/sys/fs/cgroup/memory.current", "100000\n");
  EXPECT_EQ(Bytes(), 200000u);
}

TEST_F(MachineMemory, KnowsVersion1OfControlGroups) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/\n4:memory:/broker\n0::/ignored\n");
  Write("/sys/fs/cgroup/memory/broker/memory.limit_in_bytes", "400000\n");
  Write("/sys/fs/cgroup/memory/broker/memory.usage_in_bytes", "100000\n");
  Write("/sys/fs/cgroup/memory/broker/memory.stat",
        "total_inactive_file 20000\n");
  EXPECT_EQ(Bytes(), 320000u);
}

TEST_F(MachineMemory, ThatCanNotBeReadIsAnError) {
  const auto available = ReadAvailableMemory(root_ + "/nowhere");
  EXPECT_EQ(available.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(available.status().message()),
              HasSubstr("mount /proc"));
}

}  // namespace
}  // namespace gmb::device
