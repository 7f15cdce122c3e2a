// The heap but for captures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "gmb/error.h"
#include "tests/client/heap/heap_core_fixture.h"

namespace gmb::internal {
namespace {

using ::testing::HasSubstr;

TEST_F(HeapCoreTest, NothingIsNullAndCostsNothing) {
  EXPECT_EQ(Get(0), nullptr);
  Free(nullptr);
  EXPECT_TRUE(Asked().empty());
}

TEST_F(HeapCoreTest, TooMuchIsRefused) {
  LimitTo(64 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(uint64_t{1} << 60)));
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(~uint64_t{0})));
  EXPECT_TRUE(absl::IsResourceExhausted(heap_->Prepare(~uint64_t{0})));
  EXPECT_TRUE(
      absl::IsResourceExhausted(heap_->OpenPool(~uint64_t{0}).status()));
  EXPECT_NE(Get(1), nullptr);
}

TEST_F(HeapCoreTest, WhatIsFreeServesWithoutTheBroker) {
  void* const first = Get(kMiB);
  Free(first);
  EXPECT_EQ(Get(kMiB), first);
  EXPECT_EQ(Asked().size(), 1U);
  EXPECT_EQ(streams_->records(), 0);
}

// In powers of two, as others do.
TEST_F(HeapCoreTest, ItGrowsByAboutAThirdOfWhatItHas) {
  Get(64 * kMiB);
  Get(256 * kMiB);
  Get(kMiB);
  Get(960 * kMiB);
  Get(320 * kMiB);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(64 * kMiB, 256 * kMiB, 128 * kMiB,
                                              960 * kMiB, 320 * kMiB));
  Get(2048 * kMiB);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(2048 * kMiB));
}

class HeapCoreRunTest : public HeapCoreTest {
 protected:
  HeapCoreRunTest() {
    Make({.least_growth_bytes = 64 * kMiB,
          .most_growth_bytes = 1024 * kMiB,
          .wait = absl::ZeroDuration(),
          .growth_run = std::chrono::hours(1)});
  }
};

TEST_F(HeapCoreRunTest, GrowingInARowItAsksForOneMoreAndGivesItBackUnused) {
  Get(60 * kMiB);
  Get(60 * kMiB);
  Get(60 * kMiB);
  EXPECT_EQ(Questions(), 2);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(64 * kMiB, 64 * kMiB, 64 * kMiB));
  Get(60 * kMiB);
  EXPECT_EQ(Questions(), 1);
  EXPECT_EQ(LeasedBytes(), 5 * 64 * kMiB);
  EXPECT_EQ(heap_->statistics().empty_bytes, 64 * kMiB);  // may be trimmed
  heap_->ReturnAhead();
  EXPECT_EQ(LeasedBytes(), 4 * 64 * kMiB);
  Free(Get(60 * kMiB));
  EXPECT_EQ(LeasedBytes(), (4 * 64 + 2 * 128) * kMiB);
  heap_->ReturnAhead();
  // Memory that was needed once stays.
  EXPECT_EQ(LeasedBytes(), (4 * 64 + 128) * kMiB);
}

TEST_F(HeapCoreRunTest, WhatIsPreparedStaysThoughItWasAskedForAhead) {
  for (int i = 0; i < 2; ++i) Get(60 * kMiB);
  ASSERT_GT(heap_->statistics().empty_bytes, 0U);
  const uint64_t leased = LeasedBytes();
  EXPECT_EQ(heap_->Prepare(60 * kMiB), absl::OkStatus());
  heap_->ReturnAhead();
  EXPECT_EQ(LeasedBytes(), leased);
}

TEST_F(HeapCoreRunTest, OfLargeBlocksItAsksForNoMoreThanIsNeeded) {
  Get(60 * kMiB);
  for (int i = 0; i < 3; ++i) Get(100 * kMiB);
  EXPECT_EQ(LeasedBytes(), (64 + 3 * 100) * kMiB);
}

TEST_F(HeapCoreRunTest, WhereOneMoreIsRefusedItIsNotAskedForAgainAtOnce) {
  LimitTo(192 * kMiB);
  Get(60 * kMiB);
  Get(60 * kMiB);
  EXPECT_EQ(Asked().size(), 3U);
  LimitTo(128 * kMiB);
  heap_->ReturnAhead();
  LimitTo(192 * kMiB);
  Get(60 * kMiB);  // and one more is over the limit
  EXPECT_EQ(Asked().size(), 2U);
  LimitTo(1024 * kMiB);
  Get(60 * kMiB);
  EXPECT_EQ(Asked().size(), 1U);
}

TEST_F(HeapCoreTest, WhereTheQuotaEndsItTakesLessAndThenWhatItNeeds) {
  LimitTo(72 * kMiB);
  Get(40 * kMiB);
  Get(24 * kMiB);
  Get(6 * kMiB);  // asks for 64, 32, 16 and 8 MiB
  EXPECT_EQ(Asked().size(), 5U);
  EXPECT_EQ(LeasedBytes(), 72 * kMiB);
}

// Not with a rest that no second one fits in, which is missing where the limit
// ends.
TEST_F(HeapCoreTest, ItGrowsByWholeLargeBlocks) {
  Make({4 * kMiB, 1024 * kMiB, absl::ZeroDuration()});
  LimitTo(112 * kMiB);
  Get(6 * kMiB);
  for (int i = 0; i < 8; ++i) Get(12 * kMiB);
  EXPECT_EQ(LeasedBytes(), 102 * kMiB);
}

// The source says so of every request.
TEST_F(HeapCoreTest, HalfOfAnOddNumberOfBlocksIsWholeBlocks) {
  Make({3 * kBlockBytes, 1024 * kMiB, absl::ZeroDuration()});
  LimitTo(0);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(1)));
  EXPECT_THAT(Asked(), ::testing::ElementsAre(3 * kBlockBytes, 2 * kBlockBytes,
                                              kBlockBytes, kBlockBytes));
}

TEST_F(HeapCoreTest, OutOfMemoryCarriesTheReasonAndDoesNoHarm) {
  LimitTo(64 * kMiB);
  void* const held = Get(60 * kMiB);
  absl::Status refusal = absl::ResourceExhaustedError("ask your operator");
  refusal.SetPayload("type.example/reason", absl::Cord("why"));
  RefuseWith(refusal);
  const absl::Status status = Refused(8 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("ask your operator"));
  EXPECT_EQ(status.GetPayload("type.example/reason"), absl::Cord("why"));
  EXPECT_EQ(heap_->statistics().out_of_memory, 1U);
  Free(held);
  EXPECT_NE(Get(8 * kMiB), nullptr);
}

TEST_F(HeapCoreTest, WhatTheBrokerCannotAnswerIsNotOutOfMemory) {
  LimitTo(0);
  RefuseWith(absl::UnavailableError("hung up"));
  EXPECT_TRUE(absl::IsUnavailable(Refused(1)));
  EXPECT_EQ(Asked().size(), 1U);  // and it is not asked for less
}

TEST_F(HeapCoreTest, ChunksThatAreTooSmallGoBackBeforeItGivesUp) {
  LimitTo(128 * kMiB);
  void* const small = Get(64 * kMiB);
  void* const other = Get(64 * kMiB);
  Free(small);
  Free(other);
  EXPECT_NE(Get(128 * kMiB), nullptr);
  EXPECT_EQ(heap_->statistics().returned_leases, 2U);
}

TEST_F(HeapCoreTest, TheWaitIsForTheLastResort) {
  Make({64 * kMiB, 1024 * kMiB, absl::Seconds(3)});
  LimitTo(0);
  Refused(1).IgnoreError();
  base::MutexLock lock(&source_->mu);
  ASSERT_FALSE(source_->waits.empty());
  EXPECT_EQ(source_->waits.back(), absl::Seconds(3));
  source_->waits.pop_back();
  EXPECT_THAT(source_->waits, ::testing::Each(absl::ZeroDuration()));
}

TEST_F(HeapCoreTest, AnotherStreamGetsMemoryAfterAnEventOnly) {
  LimitTo(64 * kMiB);
  void* const first = Get(64 * kMiB, 1);
  Free(first);
  LimitTo(128 * kMiB);
  void* const second = Get(64 * kMiB, 2);  // 1 has not come to its end
  EXPECT_NE(second, first);
  Free(second);
  streams_->FinishAll(StreamNumber(1));
  EXPECT_EQ(Get(64 * kMiB, 2), second);  // its own first
  EXPECT_EQ(Get(64 * kMiB, 2), first);
  EXPECT_EQ(streams_->waits(), 0);
}

TEST_F(HeapCoreTest, BeforeItGivesUpItWaitsForOtherStreams) {
  LimitTo(64 * kMiB);
  void* const first = Get(64 * kMiB, 1);
  Free(first);
  EXPECT_EQ(Get(64 * kMiB, 2), first);
  EXPECT_EQ(streams_->waits(), 1);
}

TEST_F(HeapCoreTest, ABlockFreedOnAnotherStreamIsThatStreams) {
  LimitTo(64 * kMiB);
  void* const block = Get(64 * kMiB, 1);
  EXPECT_EQ(heap_->Free(block, StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(Get(64 * kMiB, 2), block);
  EXPECT_EQ(streams_->records(), 0);
}

TEST_F(HeapCoreTest, ARecordedBlockComesBackWhenAllOfItsStreamsGotThere) {
  void* const block = Get(64 * kMiB, 1);
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(1)), absl::OkStatus());
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(3)), absl::OkStatus());
  Free(block);
  EXPECT_EQ(heap_->statistics().held_bytes, 64 * kMiB);
  EXPECT_EQ(streams_->records(), 2);
  EXPECT_NE(Get(64 * kMiB, 1), block);
  streams_->FinishAll(StreamNumber(2));
  EXPECT_NE(Get(64 * kMiB, 1), block);
  streams_->FinishAll(StreamNumber(3));
  EXPECT_NE(Get(65 * kMiB, 1), nullptr);  // looks, since it has to grow
  EXPECT_EQ(Get(64 * kMiB, 1), block);
}

TEST_F(HeapCoreTest, ForeignAndFreedAddressesAreReportedAndHarmless) {
  int foreign = 0;
  void* const block = Get(4096);
  void* const inside = static_cast<char*>(block) + 512;
  for (void* address : {static_cast<void*>(&foreign), inside}) {
    EXPECT_TRUE(absl::IsInvalidArgument(heap_->Free(address, std::nullopt)));
    EXPECT_TRUE(absl::IsInvalidArgument(heap_->RecordStream(address, nullptr)));
  }
  Free(block);
  const absl::Status again = heap_->Free(block, std::nullopt);
  EXPECT_TRUE(absl::IsInvalidArgument(again));
  EXPECT_THAT(std::string(again.message()), HasSubstr("freed already"));
  EXPECT_EQ(heap_->statistics().frees, 1U);
  EXPECT_EQ(heap_->statistics().allocated_bytes, 0U);
  EXPECT_EQ(Get(4096), block);
  EXPECT_NE(Get(4096), block);
}

TEST_F(HeapCoreTest, TrimGivesBackWhatIsEmptyAndNoMoreThanIsAskedFor) {
  std::vector<uint64_t> told;
  Make({64 * kMiB, 64 * kMiB, absl::ZeroDuration(),
        [&](uint64_t bytes) { told.push_back(bytes); }});
  void* const first = Get(64 * kMiB);
  void* const second = Get(64 * kMiB);
  void* const third = Get(64 * kMiB);
  EXPECT_EQ(heap_->Trim(1), 0U);
  Free(first);
  Free(third);
  EXPECT_EQ(told.back(), 128 * kMiB);
  EXPECT_EQ(heap_->Trim(1), 64 * kMiB);
  EXPECT_EQ(told.back(), 64 * kMiB);
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 64 * kMiB);
  EXPECT_EQ(told.back(), 0U);
  EXPECT_EQ(LeasedBytes(), 64 * kMiB);
  Free(second);
}

TEST_F(HeapCoreTest, PreparedMemoryServesWithoutTheBroker) {
  EXPECT_EQ(heap_->Prepare(100 * kMiB), absl::OkStatus());
  EXPECT_EQ(heap_->Prepare(50 * kMiB), absl::OkStatus());
  EXPECT_EQ(Asked().size(), 1U);
  Get(100 * kMiB);
  EXPECT_TRUE(Asked().empty());
}

TEST_F(HeapCoreTest, ManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kSteps = 4000;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      std::vector<void*> live;
      for (int i = 0; i < kSteps; ++i) {
        // Some have a stream of their own, some share one.
        void* const stream =
            StreamNumber(static_cast<uintptr_t>(t % 2 == 0 ? t : 1));
        if (live.size() < 32 && random() % 2 == 0) {
          const auto got = heap_->Allocate(1 + random() % (2 * kMiB), stream);
          if (!got.ok()) ++failed;
          if (got.ok()) live.push_back(*got);
        } else if (!live.empty()) {
          if (random() % 8 == 0 &&
              !heap_->RecordStream(live.back(), StreamNumber(1)).ok())
            ++failed;
          if (!heap_->Free(live.back(), stream).ok()) ++failed;
          live.pop_back();
        }
        if (i % 500 == 0) heap_->Trim(64 * kMiB);
        if (i % 100 == 0) streams_->FinishAll(stream);
      }
      for (void* address : live) {
        if (!heap_->Free(address, std::nullopt).ok()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(heap_->statistics().blocks, 0U);
  for (uintptr_t stream = 0; stream < kThreads; ++stream)
    streams_->FinishAll(StreamNumber(stream));
  heap_->Trim(~uint64_t{0});
  EXPECT_EQ(LeasedBytes(), 0U);
}

}  // namespace
}  // namespace gmb::internal
