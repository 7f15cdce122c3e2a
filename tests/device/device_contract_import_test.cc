#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <variant>

#include "tests/device/device_contract.h"

// The part of the contract about slabs of a broker that is dead, which the next
// one takes over.

namespace gmb::device {
namespace {

// The handle that a keeper has of a slab whose creator is dead by now.
absl::StatusOr<ShareableHandle> KeptOf(const DeviceInfo& info, uint64_t bytes) {
  absl::StatusOr<std::unique_ptr<RemoteMapper>> broker =
      RemoteMapper::Start(info);
  if (!broker.ok()) return broker.status();
  return (*broker)->CreateSlab(bytes);  // killed at the end
}

TEST_P(DeviceContract, ASlabOutlivesItsBrokerWithItsBytes) {
  if (is_ipc()) GTEST_SKIP() << "ipc memory ends with its process";
  std::unique_ptr<RemoteMapper> client = StartClient();
  std::unique_ptr<RemoteMapper> reader = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<ShareableHandle> kept =
      KeptOf(allocator_->info(), large_bytes());
  ASSERT_OK(kept);
  Slab slab{.bytes = large_bytes(), .handle = *std::move(kept)};
  ASSERT_OK(Lease(client.get(), {&slab}));
  ASSERT_OK(client->WritePattern(0, slab.bytes, 9));
  absl::StatusOr<SlabKey> key = allocator_->Import(slab.handle, slab.bytes);
  ASSERT_OK(key);
  slab.key = *key;
  EXPECT_LE(FreeBytes(), before - slab.bytes + tolerance());
  EXPECT_EQ(client->CountPatternErrors(0, slab.bytes, 9).value(), 0);
  ASSERT_OK(Lease(reader.get(), {&slab}));
  EXPECT_EQ(reader->CountPatternErrors(0, slab.bytes, 9).value(), 0);
  ASSERT_OK(client->Unmap());
  ASSERT_OK(reader->Unmap());
  ASSERT_OK(Destroy(&slab));
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
  EXPECT_EQ(allocator_->Destroy(*key).code(), absl::StatusCode::kNotFound);
}

TEST_P(DeviceContract, AnImportedSlabThatIsHeldAfterItsEndIsNotBack) {
  if (is_ipc()) GTEST_SKIP() << "ipc memory ends with its process";
  std::unique_ptr<RemoteMapper> holder = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<ShareableHandle> kept =
      KeptOf(allocator_->info(), large_bytes());
  ASSERT_OK(kept);
  Slab slab{.bytes = large_bytes(), .handle = *std::move(kept)};
  ASSERT_OK(Lease(holder.get(), {&slab}));
  ASSERT_OK(holder->Fill(0, slab.bytes, 0x3C));
  absl::StatusOr<SlabKey> key = allocator_->Import(slab.handle, slab.bytes);
  ASSERT_OK(key);
  slab.key = *key;
  ASSERT_OK(Destroy(&slab));
  if (!is_real_gpu() && !is_host()) {
    GTEST_SKIP() << "the fake driver does not see other processes";
  }
  EXPECT_LE(FreeBytes(), before - slab.bytes + tolerance());
  if (is_host()) {
    ASSERT_EQ(allocator_->Held().size(), 1);
    EXPECT_EQ(allocator_->Held()[0].key, *key);
    EXPECT_EQ(allocator_->Held()[0].bytes, slab.bytes);
    EXPECT_EQ(allocator_->Held()[0].stuck, "");
  }
  EXPECT_EQ(holder->CountOther(0, slab.bytes, 0x3C).value(), 0);
  holder->Kill();
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
  EXPECT_TRUE(allocator_->Held().empty());
}

TEST_P(DeviceContract, ImportLeavesTheHandleWithItsOwnerAndOpensFewFds) {
  if (is_ipc()) GTEST_SKIP() << "ipc memory ends with its process";
  for (int round = 0; round < 5; ++round) {
    absl::StatusOr<ShareableHandle> kept = KeptOf(allocator_->info(), kSlab);
    ASSERT_OK(kept);
    const uint64_t fds = CountOpenFds();
    absl::StatusOr<SlabKey> key = allocator_->Import(*kept, kSlab);
    ASSERT_OK(key);
    EXPECT_GE(fcntl(std::get<base::UniqueFd>(*kept).get(), F_GETFD), 0);
    kept = ShareableHandle();
    ASSERT_OK(allocator_->Destroy(*key));
    // The driver may open what it keeps the first time.
    if (round > 0) {
      EXPECT_LE(CountOpenFds(), fds - 1);
    }
  }
}

TEST_P(DeviceContract, SlabsOfTheOldBrokerAndNewOnesHaveDifferentKeys) {
  if (is_ipc()) GTEST_SKIP() << "ipc memory ends with its process";
  absl::StatusOr<ShareableHandle> kept = KeptOf(allocator_->info(), kSlab);
  ASSERT_OK(kept);
  absl::StatusOr<Slab> ours = Create(kSlab);
  ASSERT_OK(ours);
  absl::StatusOr<SlabKey> key = allocator_->Import(*kept, kSlab);
  ASSERT_OK(key);
  absl::StatusOr<Slab> later = Create(kSlab);
  ASSERT_OK(later);
  EXPECT_NE(*key, ours->key);
  EXPECT_NE(*key, later->key);
  for (Slab* slab : {&*ours, &*later}) EXPECT_OK(Destroy(slab));
  EXPECT_OK(allocator_->Destroy(*key));
}

TEST_P(DeviceContract, WhatIsNoSlabIsNotImported) {
  if (is_ipc()) GTEST_SKIP() << "ipc imports nothing";
  const uint64_t before = FreeBytes();
  const ShareableHandle null_device =
      base::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  const ShareableHandle none = base::UniqueFd();
  const ShareableHandle ipc = IpcHandle{};
  for (const ShareableHandle* handle : {&null_device, &none, &ipc}) {
    const absl::Status refused = allocator_->Import(*handle, kSlab).status();
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.message(), "");
    if (is_host()) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    }
  }
  absl::StatusOr<ShareableHandle> kept = KeptOf(allocator_->info(), kSlab);
  ASSERT_OK(kept);
  for (const uint64_t bytes : {uint64_t{0}, kSlab + 1}) {
    EXPECT_EQ(allocator_->Import(*kept, bytes).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  kept = ShareableHandle();
  EXPECT_TRUE(WaitForFree(before));
}

TEST_P(DeviceContract, AHostSlabIsImportedInItsSizeAlone) {
  if (!is_host()) GTEST_SKIP() << "only memfds tell their size";
  absl::StatusOr<ShareableHandle> kept = KeptOf(allocator_->info(), 2 * kSlab);
  ASSERT_OK(kept);
  for (const uint64_t bytes : {kSlab, 3 * kSlab}) {
    EXPECT_EQ(allocator_->Import(*kept, bytes).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
  EXPECT_EQ(allocator_->Import(*kept, allocator_->info().total_bytes + kSlab)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FreeBytes(), allocator_->info().total_bytes);
  EXPECT_OK(allocator_->Import(*kept, 2 * kSlab));
}

TEST_P(DeviceContract, AHostSlabThatItsHolderCouldResizeIsNotImported) {
  if (!is_host()) GTEST_SKIP() << "only memfds have seals";
  ShareableHandle unsealed =
      base::UniqueFd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fd = std::get<base::UniqueFd>(unsealed).get();
  ASSERT_EQ(ftruncate(fd, kSlab), 0);
  EXPECT_EQ(allocator_->Import(unsealed, kSlab).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(allocator_->Import(unsealed, kSlab).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(DeviceContract, TheMemoryOfAnIpcDeviceEndsWithItsBroker) {
  if (!is_ipc()) GTEST_SKIP() << "the others import";
  absl::StatusOr<Slab> slab = Create(kSlab);
  ASSERT_OK(slab);
  const absl::Status refused = allocator_->Import(slab->handle, kSlab).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("ends with its broker"));
  EXPECT_OK(Destroy(&*slab));
}

}  // namespace
}  // namespace gmb::device
