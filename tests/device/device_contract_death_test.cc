#include "tests/device/device_contract.h"
#include "tests/run_all.h"

// The part of the contract about clients that die, lie, and leak.

namespace gmb::device {
namespace {

TEST_P(DeviceContract, MemoryOfAKilledClientComesBack) {
  const uint64_t before = FreeBytes();
  for (const bool dies_first : {true, false}) {
    absl::StatusOr<Slab> slab = Create(large_bytes());
    ASSERT_OK(slab);
    std::unique_ptr<RemoteMapper> client = StartClient();
    ASSERT_OK(Lease(client.get(), {&*slab}));
    ASSERT_OK(client->Fill(0, slab->bytes, 1));
    if (dies_first) client->Kill();
    ASSERT_OK(Destroy(&*slab));
    client->Kill();
    EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
  }
}

// A client that was told to give a slab up and did not: it keeps reading its
// own old bytes, the device is short of them, and nobody else gets them.
TEST_P(DeviceContract, KeptMappingStaysHeldUntilTheKeeperDies) {
  std::unique_ptr<RemoteMapper> keeper = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<Slab> slab = Create(large_bytes());
  ASSERT_OK(slab);
  ASSERT_OK(Lease(keeper.get(), {&*slab}));
  ASSERT_OK(keeper->WritePattern(0, slab->bytes, 3));
  ASSERT_OK(Destroy(&*slab));
  EXPECT_LE(FreeBytes(), before - slab->bytes + tolerance());
  absl::StatusOr<Slab> next = Create(large_bytes());
  ASSERT_OK(next);
  std::unique_ptr<RemoteMapper> other = StartClient();
  ASSERT_OK(Lease(other.get(), {&*next}));
  ASSERT_OK(other->Fill(0, next->bytes, 0xFF));
  EXPECT_EQ(keeper->CountPatternErrors(0, slab->bytes, 3).value(), 0);
  EXPECT_LE(FreeBytes(), before - 2 * slab->bytes + tolerance());
  keeper->Kill();
  other->Kill();
  ASSERT_OK(Destroy(&*next));
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
}

TEST_P(DeviceContract, KeptFdStaysHeldUntilTheKeeperDies) {
  if (is_ipc()) GTEST_SKIP() << "ipc has no fds";
  std::unique_ptr<RemoteMapper> keeper = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<Slab> slab = Create(large_bytes());
  ASSERT_OK(slab);
  ASSERT_OK(Lease(keeper.get(), {&*slab}, /*keep_fds=*/true));
  ASSERT_OK(keeper->Fill(0, slab->bytes, 0x42));
  ASSERT_OK(keeper->Unmap());
  ASSERT_OK(Destroy(&*slab));
  EXPECT_LE(FreeBytes(), before - slab->bytes + tolerance());
  keeper->Kill();
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
}

TEST_P(DeviceContract, MemoryComesBackAsSoonAsTheClientUnmaps) {
  std::unique_ptr<RemoteMapper> client = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<Slab> slab = Create(large_bytes());
  ASSERT_OK(slab);
  ASSERT_OK(Lease(client.get(), {&*slab}));
  ASSERT_OK(client->Fill(0, slab->bytes, 1));
  ASSERT_OK(Destroy(&*slab));
  EXPECT_LE(FreeBytes(), before - slab->bytes + tolerance());
  ASSERT_OK(client->Unmap());
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
}

TEST_P(DeviceContract, DestroyingARangeUnmapsIt) {
  std::unique_ptr<RemoteMapper> client = StartClient();
  const uint64_t before = FreeBytes();
  absl::StatusOr<Slab> slab = Create(large_bytes());
  ASSERT_OK(slab);
  ASSERT_OK(Lease(client.get(), {&*slab}));
  ASSERT_OK(client->FreeRange());
  ASSERT_OK(Destroy(&*slab));
  EXPECT_TRUE(WaitForFree(before)) << "free " << FreeBytes();
}

TEST_P(DeviceContract, NeitherSideLeaksDescriptors) {
  std::unique_ptr<RemoteMapper> client = StartClient();
  uint64_t ours = 0;
  uint64_t theirs = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Slab> slabs;
    std::vector<Slab*> pointers;
    for (int i = 0; i < (is_ipc() ? 1 : 4); ++i) {
      absl::StatusOr<Slab> slab = Create((i + 1) * kSlab);
      ASSERT_OK(slab);
      slabs.push_back(*std::move(slab));
    }
    for (Slab& slab : slabs) pointers.push_back(&slab);
    ASSERT_OK(Lease(client.get(), pointers));
    ASSERT_OK(client->Unmap());
    Slab bad{.bytes = kSlab, .handle = IpcHandle{}};
    EXPECT_FALSE(Lease(client.get(), {pointers[0], &bad}).ok());
    ASSERT_OK(client->FreeRange());
    for (Slab& slab : slabs) ASSERT_OK(Destroy(&slab));
    EXPECT_FALSE(Create(kSlab + 1).ok());
    FreeBytes();
    if (round == 1) {  // by now the driver has opened what it keeps
      ours = CountOpenFds();
      theirs = client->CountOpenFds().value();
    }
  }
  EXPECT_EQ(CountOpenFds(), ours);
  EXPECT_EQ(client->CountOpenFds().value(), theirs);
}

TEST_P(DeviceContract, MoreSlabsThanOneMessageCarriesFormOneRange) {
  if (is_ipc()) GTEST_SKIP() << "ipc maps one slab a range";
  constexpr uint64_t kSlabs = 300;
  std::vector<Slab> slabs;
  std::vector<Slab*> pointers;
  for (uint64_t i = 0; i < kSlabs; ++i) {
    absl::StatusOr<Slab> slab = Create(kSlab);
    ASSERT_OK(slab);
    slabs.push_back(*std::move(slab));
  }
  for (Slab& slab : slabs) pointers.push_back(&slab);
  std::unique_ptr<RemoteMapper> writer = StartClient();
  std::unique_ptr<RemoteMapper> reader = StartClient();
  ASSERT_OK(Lease(writer.get(), pointers));
  ASSERT_OK(Lease(reader.get(), pointers));
  for (uint64_t i = 1; i < kSlabs; ++i) {  // across every seam
    ASSERT_OK(writer->WritePattern(i * kSlab - 4096, 8192, i));
  }
  for (uint64_t i = 1; i < kSlabs; ++i) {
    ASSERT_EQ(reader->CountPatternErrors(i * kSlab - 4096, 8192, i).value(), 0)
        << "seam " << i;
  }
  for (Slab& slab : slabs) EXPECT_OK(Destroy(&slab));
}

TEST_P(DeviceContract, ClientInItsOwnNamespacesMapsSlabs) {
  absl::StatusOr<std::unique_ptr<RemoteMapper>> client =
      RemoteMapper::Start(allocator_->info(), {.own_namespaces = true});
  if (absl::IsPermissionDenied(client.status())) {
    GTEST_SKIP() << "NOT TESTED: " << client.status();
  }
  ASSERT_OK(client);
  absl::StatusOr<Slab> slab = Create(kSlab);
  ASSERT_OK(slab);
  absl::Status leased = Lease(client->get(), {&*slab});
  if (is_ipc() && !leased.ok()) {
    EXPECT_OK(Destroy(&*slab));
    GTEST_SKIP() << "ipc does not cross namespaces here: " << leased;
  }
  ASSERT_OK(leased);
  ASSERT_OK((*client)->Fill(0, kSlab, 0x77));
  std::unique_ptr<RemoteMapper> reader = StartClient();
  ASSERT_OK(Lease(reader.get(), {&*slab}));
  EXPECT_EQ(reader->CountOther(0, kSlab, 0x77).value(), 0);
  EXPECT_OK(Destroy(&*slab));
}

}  // namespace
}  // namespace gmb::device

int main(int argc, char** argv) {
  if (const auto status = gmb::device::RunIfRemoteMapper(argc, argv)) {
    return *status;
  }
  testing::InitGoogleMock(&argc, argv);
  return gmb::RunAllTests();
}
