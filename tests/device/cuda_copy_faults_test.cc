#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/devices.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/host_pool.h"
#include "device/hostpool/page_locker.h"
#include "tests/device/copier_contract.h"
#include "tests/device/fake_cuda/fake_cuda.h"

// Copies of a vmm device when driver calls fail, on the fake driver.

namespace gmb::device {
namespace {

constexpr CopyPacing kPacing = {
    .piece_bytes = kMiB, .window_bytes = 2 * kMiB, .streams = 2};

struct Outcome {
  absl::Status opened;  // of what comes before the copies
  absl::Status copied;
};

// Evicts two slabs and restores them into two others. The host pool is prepared
// first, so that calls come in the same order each time.
Outcome EvictAndRestore() {
  auto allocator = OpenVmmAllocator("cuda:0");
  if (!allocator.ok()) return {.opened = allocator.status(), .copied = {}};
  auto locker = OpenCudaPageLocker("cuda:0");
  if (!locker.ok()) return {.opened = locker.status(), .copied = {}};
  auto pool = HostPool::Create(
      {.bytes = 8 * kMiB, .chunk_bytes = 4 * kMiB, .threads = 1},
      *std::move(locker));
  if (!pool.ok()) return {.opened = pool.status(), .copied = {}};
  EXPECT_OK((*pool)->AwaitPrepared({0, 8 * kMiB}));
  auto copier = OpenCopier((*allocator)->info(), pool->get(), kPacing);
  if (!copier.ok()) return {.opened = copier.status(), .copied = {}};
  absl::Status status;
  for (const CopyDirection direction :
       {CopyDirection::kOut, CopyDirection::kIn}) {
    TestLease lease(allocator->get(), nullptr, {2 * kSlab, kSlab});
    absl::Status created = lease.CreateAll();
    CopyAnswers answers;
    for (size_t i = 0; i < lease.num_slabs(); ++i) {
      (*copier)->Push({.direction = direction,
                       .slab = lease.Shared(i),
                       .slab_bytes = lease.slab_bytes()[i],
                       .room = {{i * 2 * kSlab, lease.slab_bytes()[i]}},
                       .done = answers.Expect(i)});
    }
    (*copier)->Wake();
    status.Update(answers.WaitForAll());
    status.Update(created);
    status.Update(lease.DestroyAll());
  }
  return {.opened = absl::OkStatus(), .copied = status};
}

uint64_t FreeBytes() {
  return OpenVmmAllocator("cuda:0").value()->FreeBytes().value();
}

TEST(CudaCopyFaults, EveryCallMayFailAndLeavesNothingBehind) {
  ASSERT_OK(EvictAndRestore().copied);
  const uint64_t fds = CountOpenFds();
  const uint64_t free_bytes = FreeBytes();
  int reported = 0;
  uint64_t k = 0;
  for (std::string failed = "?"; !failed.empty();) {
    FakeCudaFail(++k, CUDA_ERROR_UNKNOWN);
    const Outcome outcome = EvictAndRestore();
    failed = FakeCudaFailed() != nullptr ? FakeCudaFailed() : "";
    FakeCudaFail(0, CUDA_SUCCESS);
    SCOPED_TRACE(testing::Message() << "call " << k << ": " << failed);
    EXPECT_EQ(FakeCudaLive(), 0u);
    EXPECT_EQ(FreeBytes(), free_bytes);
    EXPECT_EQ(CountOpenFds(), fds);
    absl::Status status = outcome.opened;
    status.Update(outcome.copied);
    if (!status.ok()) {
      ++reported;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
      EXPECT_NE(status.message().find("FAKE_ERROR"), std::string::npos);
    } else {
      // Nobody is told of these failures: giving back at the end, contexts that
      // are left, and page-locking, without which copies are made all the same.
      EXPECT_TRUE(failed.empty() ||
                  failed.find("Destroy") != std::string::npos ||
                  failed.find("Release") != std::string::npos ||
                  failed.find("Pop") != std::string::npos ||
                  failed.find("Push") != std::string::npos ||
                  failed.find("Host") != std::string::npos ||
                  failed.find("Retain") != std::string::npos)
          << failed;
    }
  }
  EXPECT_GT(k, 60u);
  EXPECT_GT(reported, 40);
  ASSERT_OK(EvictAndRestore().copied);
}

// A sticky error: every copy from then on is UNAVAILABLE, nothing hangs, and
// the copier ends.
TEST(CudaCopyFaults, ALostDeviceFailsEveryCopyAndEndsInOrder) {
  for (uint64_t k = 1; k < 120; k += 3) {
    SCOPED_TRACE(testing::Message() << "lost at call " << k);
    auto allocator = OpenVmmAllocator("cuda:0");
    ASSERT_OK(allocator);
    auto pool = HostPool::Create(
        {.bytes = 16 * kMiB, .chunk_bytes = 4 * kMiB, .threads = 1}, nullptr);
    ASSERT_OK(pool);
    ASSERT_OK((*pool)->AwaitPrepared({0, 16 * kMiB}));
    auto copier = OpenCopier((*allocator)->info(), pool->get(), kPacing);
    ASSERT_OK(copier);
    TestLease lease(allocator->get(), nullptr, {2 * kSlab, kSlab, 2 * kSlab});
    ASSERT_OK(lease.CreateAll());
    FakeCudaFailFrom(k, CUDA_ERROR_ECC_UNCORRECTABLE);
    CopyAnswers answers;
    for (size_t i = 0; i < lease.num_slabs(); ++i) {
      (*copier)->Push({.slab = lease.Shared(i),
                       .slab_bytes = lease.slab_bytes()[i],
                       .room = {{i * 2 * kSlab, lease.slab_bytes()[i]}},
                       .done = answers.Expect(i)});
    }
    (*copier)->Wake();
    const std::vector<absl::Status> statuses = answers.Wait();
    bool lost = false;
    for (const absl::Status& status : statuses) {
      lost = lost || !status.ok();
      if (lost) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      }
    }
    EXPECT_EQ(lost, FakeCudaFailed() != nullptr);
    (void)lease.DestroyAll();
    copier->reset();
    FakeCudaFail(0, CUDA_SUCCESS);
    allocator->reset();
    pool->reset();
    EXPECT_EQ(FakeCudaLive(), 0u);
  }
}

TEST(CudaCopyFaults, TheHostPoolIsPageLockedForAllContexts) {
  auto locker = OpenCudaPageLocker("cuda:0");
  ASSERT_OK(locker);
  EXPECT_EQ(FakeCudaLive(), 0u) << "no context before the first page is locked";
  {
    auto pool = HostPool::Create(
        {.bytes = 10 * kMiB, .chunk_bytes = 4 * kMiB, .threads = 2},
        *std::move(locker));
    ASSERT_OK(pool);
    ASSERT_OK((*pool)->AwaitPrepared({0, 10 * kMiB}));
    EXPECT_EQ(FakeCudaPageLockedBytes(), 10 * kMiB);
    EXPECT_EQ((*pool)->progress().locked_bytes, 10 * kMiB);
  }
  EXPECT_EQ(FakeCudaLive(), 0u);
  EXPECT_EQ(OpenCudaPageLocker("cuda:7").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace gmb::device
