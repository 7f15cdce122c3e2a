#include "tests/device/copier_contract.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/run_all.h"

namespace gmb::device {
namespace {

using testing::ElementsAre;

constexpr CopyDirection kOut = CopyDirection::kOut;
constexpr CopyDirection kIn = CopyDirection::kIn;

INSTANTIATE_TEST_SUITE_P(Devices, CopierContract,
                         testing::Values(DeviceKind::kHost, DeviceKind::kVmm),
                         KindName);

TEST_P(CopierContract, ContentsComeBackAtTheSameAddress) {
  const uint64_t free_bytes = FreeBytes();
  TestLease lease = MakeLease({6 * kMiB, 2 * kMiB, 10 * kMiB});
  ASSERT_OK(lease.CreateAll());
  ASSERT_OK(lease.Map());
  void* const address = lease.address();
  ASSERT_OK(lease.Write(1));
  ASSERT_OK(lease.Unmap());
  const std::vector<HostExtent> place = {{2 * kMiB, 18 * kMiB}};
  ASSERT_OK(CopyAll(kOut, lease, place));
  ASSERT_OK(lease.DestroyAll());
  EXPECT_TRUE(WaitForFree(free_bytes));
  ASSERT_OK(lease.CreateAll());
  ASSERT_OK(CopyAll(kIn, lease, place));
  ASSERT_OK(lease.Map());
  EXPECT_EQ(lease.address(), address);
  EXPECT_EQ(lease.CountWrongGranules(1), 0u);
  ASSERT_OK(lease.Unmap());
  ASSERT_OK(lease.DestroyAll());
}

TEST_P(CopierContract, OtherSlabsAndScatteredRoomHoldTheSameContents) {
  TestLease lease = MakeLease({10 * kMiB, 4 * kMiB});
  ASSERT_OK(lease.CreateAll());
  ASSERT_OK(lease.Map());
  ASSERT_OK(lease.Write(2));
  const std::vector<HostExtent> place = {
      {40 * kMiB, 6 * kMiB}, {0, 2 * kMiB}, {14 * kMiB, 6 * kMiB}};
  ASSERT_OK(CopyAll(kOut, lease, place));
  TestLease other = MakeLease({2 * kMiB, 2 * kMiB, 10 * kMiB});
  ASSERT_OK(other.CreateAll());
  ASSERT_OK(CopyAll(kIn, other, place));
  ASSERT_OK(other.Map());
  EXPECT_EQ(other.CountWrongGranules(2), 0u);
  // The source was only read, and its client kept it mapped.
  EXPECT_EQ(lease.CountWrongGranules(2), 0u);
  ASSERT_OK(lease.Unmap());
  ASSERT_OK(other.Unmap());
  ASSERT_OK(lease.DestroyAll());
  ASSERT_OK(other.DestroyAll());
}

TEST_P(CopierContract, SlabsAreReportedInOrderAndMayBeDestroyedAtOnce) {
  const uint64_t free_bytes = FreeBytes();
  TestLease lease = MakeLease(std::vector<uint64_t>(12, 4 * kMiB));
  ASSERT_OK(lease.CreateAll());
  CopyAnswers answers;
  for (size_t i = 0; i < lease.num_slabs(); ++i) {
    CopyJob job = MakeJob(kOut, lease, i, {{i * 4 * kMiB, 4 * kMiB}}, &answers);
    // (The device's other calls are made by this thread before and after.)
    job.done = [&lease, i, told = std::move(job.done)](absl::Status status) {
      status.Update(lease.DestroySlab(i));
      told(std::move(status));
    };
    copier_->Push(std::move(job));
  }
  copier_->Wake();
  EXPECT_OK(answers.WaitForAll());
  const std::vector<size_t> order = answers.order();
  EXPECT_EQ(order.size(), 12u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(WaitForFree(free_bytes));
}

TEST_P(CopierContract, BothDirectionsRunAtOnce) {
  TestLease out = MakeLease({8 * kMiB, 8 * kMiB});
  TestLease in = MakeLease({8 * kMiB, 8 * kMiB});
  for (TestLease* lease : {&out, &in}) ASSERT_OK(lease->CreateAll());
  ASSERT_OK(in.Map());
  ASSERT_OK(in.Write(4));
  const std::vector<HostExtent> first = {{0, 16 * kMiB}};
  const std::vector<HostExtent> second = {{16 * kMiB, 16 * kMiB}};
  ASSERT_OK(CopyAll(kOut, in, first));
  ASSERT_OK(in.Write(5));  // to be overwritten
  ASSERT_OK(out.Map());
  ASSERT_OK(out.Write(6));
  CopyAnswers of_out;
  CopyAnswers of_in;
  PushAll(kOut, out, second, &of_out);
  PushAll(kIn, in, first, &of_in);
  EXPECT_OK(of_out.WaitForAll());
  EXPECT_OK(of_in.WaitForAll());
  EXPECT_EQ(in.CountWrongGranules(4), 0u);
  ASSERT_OK(CopyAll(kIn, in, second));
  EXPECT_EQ(in.CountWrongGranules(6), 0u);
  for (TestLease* lease : {&out, &in}) {
    ASSERT_OK(lease->Unmap());
    ASSERT_OK(lease->DestroyAll());
  }
}

TEST_P(CopierContract, ContentsOutliveTheClientThatWroteThem) {
  absl::StatusOr<Slab> slab = Create(8 * kMiB);
  ASSERT_OK(slab);
  const auto duplicate = [](const Slab& of) {
    return std::make_shared<const ShareableHandle>(base::UniqueFd(
        fcntl(std::get<base::UniqueFd>(of.handle).get(), F_DUPFD_CLOEXEC, 0)));
  };
  std::unique_ptr<RemoteMapper> writer = StartClient();
  ASSERT_OK(Lease(writer.get(), {&*slab}));
  ASSERT_OK(writer->WritePattern(0, slab->bytes, 3));
  writer->Kill();
  CopyAnswers answers;
  copier_->Push({.direction = kOut,
                 .slab = duplicate(*slab),
                 .slab_bytes = slab->bytes,
                 .room = {{0, slab->bytes}},
                 .done = answers.Expect(0)});
  copier_->Wake();
  ASSERT_OK(answers.WaitForAll());
  ASSERT_OK(Destroy(&*slab));
  slab = Create(8 * kMiB);
  ASSERT_OK(slab);
  copier_->Push({.direction = kIn,
                 .slab = duplicate(*slab),
                 .slab_bytes = slab->bytes,
                 .room = {{0, slab->bytes}},
                 .done = answers.Expect(1)});
  copier_->Wake();
  ASSERT_OK(answers.WaitForAll());
  std::unique_ptr<RemoteMapper> reader = StartClient();
  ASSERT_OK(Lease(reader.get(), {&*slab}));
  EXPECT_EQ(reader->CountPatternErrors(0, slab->bytes, 3).value(), 0);
  EXPECT_OK(Destroy(&*slab));
}

// Page-locks nothing, and not before it is allowed to.
class WaitingLocker final : public PageLocker {
 public:
  explicit WaitingLocker(std::shared_ptr<std::mutex> mutex)
      : mutex_(std::move(mutex)) {}
  absl::Status Lock(void*, uint64_t) override {
    const std::lock_guard<std::mutex> lock(*mutex_);
    return absl::OkStatus();
  }
  void Unlock(void*) override {}

 private:
  const std::shared_ptr<std::mutex> mutex_;
};

TEST_P(CopierContract, CancelledCopiesEndAndTheirSourceIsWhole) {
  auto mutex = std::make_shared<std::mutex>();
  std::unique_lock<std::mutex> held(*mutex);
  MakePool(std::make_unique<WaitingLocker>(mutex));
  MakeCopier();
  TestLease lease = MakeLease({8 * kMiB, 8 * kMiB, 8 * kMiB});
  TestLease other = MakeLease({8 * kMiB});
  ASSERT_OK(lease.CreateAll());
  ASSERT_OK(lease.Map());
  ASSERT_OK(lease.Write(7));
  ASSERT_OK(other.CreateAll());
  CopyAnswers answers;
  CopyAnswers others;
  PushAll(kOut, lease, {{0, 24 * kMiB}}, &answers, /*group=*/1);
  PushAll(kOut, other, {{24 * kMiB, 8 * kMiB}}, &others, /*group=*/2);
  copier_->Cancel(1);  // at the first piece, which waits for the host pool
  held.unlock();
  for (const absl::Status& status : answers.Wait()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  }
  EXPECT_OK(others.WaitForAll());
  EXPECT_EQ(lease.CountWrongGranules(7), 0u);
  EXPECT_OK(CopyAll(kOut, lease, {{0, 24 * kMiB}})) << "a later group";
  ASSERT_OK(lease.Unmap());
  ASSERT_OK(lease.DestroyAll());
  ASSERT_OK(other.DestroyAll());
}

TEST_P(CopierContract, ACopierThatEndsAnswersEveryJobOnce) {
  auto mutex = std::make_shared<std::mutex>();
  std::unique_lock<std::mutex> held(*mutex);
  MakePool(std::make_unique<WaitingLocker>(mutex));
  MakeCopier();
  const uint64_t fds = CountOpenFds();
  TestLease lease = MakeLease({8 * kMiB, 8 * kMiB, 8 * kMiB});
  ASSERT_OK(lease.CreateAll());
  CopyAnswers out;
  CopyAnswers in;
  PushAll(kOut, lease, {{0, 24 * kMiB}}, &out);
  PushAll(kIn, lease, {{24 * kMiB, 24 * kMiB}}, &in);
  held.unlock();
  copier_.reset();
  for (CopyAnswers* answers : {&out, &in}) {
    const std::vector<absl::Status> statuses = answers->Wait();
    EXPECT_EQ(statuses.size(), 3u);
    for (const absl::Status& status : statuses) {
      EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    }
  }
  ASSERT_OK(lease.DestroyAll());
  if (is_host()) {
    EXPECT_EQ(CountOpenFds(), fds);
  }
}

TEST_P(CopierContract, RoomThatDoesNotFitTheSlabIsRefused) {
  TestLease lease = MakeLease({4 * kMiB});
  ASSERT_OK(lease.CreateAll());
  const std::vector<std::vector<HostExtent>> bad = {
      {},
      {{0, 2 * kMiB}},
      {{0, 6 * kMiB}},
      {{0, 2 * kMiB}, {8 * kMiB, 4 * kMiB}},
      {{0, UINT64_MAX}, {0, 4 * kMiB + 1}},
      {{0, 4 * kMiB}, {0, 0}},
      {{kPoolBytes - 2 * kMiB, 4 * kMiB}},
      {{UINT64_MAX - kMiB, 4 * kMiB}},
  };
  for (const std::vector<HostExtent>& room : bad) {
    CopyAnswers answers;
    copier_->Push(MakeJob(kIn, lease, 0, room, &answers));
    copier_->Wake();
    EXPECT_EQ(answers.WaitForAll().code(), absl::StatusCode::kInvalidArgument);
  }
  ASSERT_OK(lease.DestroyAll());
}

TEST_P(CopierContract, AHandleThatIsNoSlabIsRefusedAndClosed) {
  const uint64_t fds = CountOpenFds();
  std::vector<ShareableHandle> bad;
  bad.emplace_back(base::UniqueFd());
  bad.emplace_back(IpcHandle{});
  bad.emplace_back(base::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  for (ShareableHandle& handle : bad) {
    CopyAnswers answers;
    copier_->Push(
        {.slab = std::make_shared<const ShareableHandle>(std::move(handle)),
         .slab_bytes = 4 * kMiB,
         .room = {{0, 4 * kMiB}},
         .done = answers.Expect(0)});
    copier_->Wake();
    const absl::Status refused = answers.WaitForAll();
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.code(), absl::StatusCode::kUnavailable) << refused;
  }
  if (is_host()) {
    EXPECT_EQ(CountOpenFds(), fds);
  }
}

// One call of a kind fails once: the slab that it belongs to is reported, the
// others are copied, and nothing is left behind.
TEST_P(CopierContract, AFailedCallFailsItsSlabAlone) {
  const uint64_t free_bytes = FreeBytes();
  for (const CopyDirection direction : {kOut, kIn}) {
    CopyFaults& faults = faults_[direction == kOut ? 0 : 1];
    for (int op = 0; op < CopyFaults::kOps; ++op) {
      for (const uint64_t k : {1, 2, 5, 9}) {
        TestLease lease = MakeLease({4 * kMiB, 4 * kMiB, 4 * kMiB});
        ASSERT_OK(lease.CreateAll());
        faults.fail_call[op] = faults.calls[op] + k;
        CopyAnswers answers;
        PushAll(direction, lease, {{0, 12 * kMiB}}, &answers);
        size_t failures = 0;
        for (const absl::Status& status : answers.Wait()) {
          if (status.ok()) continue;
          ++failures;
          EXPECT_EQ(status, FaultyCopyEngine::Failure());
        }
        const bool per_slab = op == static_cast<int>(CopyFaults::Op::kMap) ||
                              op == static_cast<int>(CopyFaults::Op::kUnmap);
        EXPECT_EQ(failures, per_slab && k > 3 ? 0u : 1u)
            << "op " << op << " call " << k;
        faults.fail_call[op] = 0;
        EXPECT_THAT(answers.order(), ElementsAre(0, 1, 2));
        ASSERT_OK(lease.DestroyAll());
        EXPECT_EQ(faults.mapped, 0);
        EXPECT_TRUE(WaitForFree(free_bytes));
      }
    }
  }
}

TEST_P(CopierContract, OpensByTheDevicesName) {
  auto copier = OpenCopier(allocator_->info(), pool_.get());
  ASSERT_OK(copier);
  copier_ = *std::move(copier);
  TestLease lease = MakeLease({8 * kMiB});
  ASSERT_OK(lease.CreateAll());
  ASSERT_OK(lease.Map());
  ASSERT_OK(lease.Write(11));
  ASSERT_OK(CopyAll(kOut, lease, {{0, 8 * kMiB}}));
  ASSERT_OK(lease.Write(12));
  ASSERT_OK(CopyAll(kIn, lease, {{0, 8 * kMiB}}));
  EXPECT_EQ(lease.CountWrongGranules(11), 0u);
  ASSERT_OK(lease.Unmap());
  ASSERT_OK(lease.DestroyAll());
  for (const CopyPacing& bad :
       {CopyPacing{.piece_bytes = 0}, CopyPacing{.window_bytes = 0},
        CopyPacing{.streams = 0}}) {
    EXPECT_EQ(OpenCopier(allocator_->info(), pool_.get(), bad).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(CopierContract, AnIpcDeviceHasNone) {
  DeviceInfo info = allocator_->info();
  info.kind = DeviceKind::kIpc;
  EXPECT_EQ(OpenCopier(info, pool_.get()).status().code(),
            absl::StatusCode::kFailedPrecondition);
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
