// The heap while graphs are captured, and what they leave in their pools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/client/heap/heap_core_fixture.h"

namespace gmb::internal {
namespace {

using ::testing::HasSubstr;

TEST_F(HeapCoreTest, ACaptureHasItsPoolAndNothingElse) {
  const absl::StatusOr<PoolId> pool = heap_->OpenPool(8 * kMiB);
  ASSERT_TRUE(pool.ok()) << pool.status();
  Asked();
  ASSERT_EQ(heap_->BeginCapture(*pool, StreamNumber(1)), absl::OkStatus());
  void* const temporary = Get(4 * kMiB, 1);
  Free(temporary);
  EXPECT_EQ(Get(4 * kMiB, 1), temporary);  // in the order of the graph
  void* const output = Get(2 * kMiB, 1);
  EXPECT_THAT(std::string(Refused(4 * kMiB, 1).message()),
              HasSubstr("prepare more"));
  EXPECT_TRUE(Asked().empty());
  Free(temporary);
  void* const outside = Get(4 * kMiB, 2);  // others grow as ever
  EXPECT_EQ(Asked().size(), 1U);
  ASSERT_EQ(heap_->EndCapture(*pool, StreamNumber(1)), absl::OkStatus());
  EXPECT_EQ(streams_->records(), 0);

  // A graph will write there: nobody else has it, not even after a trim.
  EXPECT_NE(Get(4 * kMiB, 1), temporary);
  Free(output);
  EXPECT_NE(Get(2 * kMiB, 1), output);
  heap_->Trim(~uint64_t{0});
  EXPECT_EQ(heap_->statistics().leases, 2U);
  // The next capture, of another stream, has it.
  ASSERT_EQ(heap_->BeginCapture(*pool, StreamNumber(3)), absl::OkStatus());
  EXPECT_EQ(Get(8 * kMiB, 3), temporary);
  ASSERT_EQ(heap_->EndCapture(*pool, StreamNumber(3)), absl::OkStatus());
  Free(outside);

  heap_->ClosePool(*pool);
  Free(temporary);
  EXPECT_GE(heap_->Trim(~uint64_t{0}), 8 * kMiB);
}

// Copies of an output, say: the graphs have ended, the stream may not have.
TEST_F(HeapCoreTest, WhatWasFreedAfterACaptureIsItsStreamsWhenThePoolIsGone) {
  LimitTo(12 * kMiB);
  const absl::StatusOr<PoolId> pool = heap_->OpenPool(12 * kMiB);
  ASSERT_TRUE(pool.ok()) << pool.status();
  ASSERT_EQ(heap_->BeginCapture(*pool, StreamNumber(1)), absl::OkStatus());
  void* const output = Get(4 * kMiB, 1);
  void* const between = Get(4 * kMiB, 1);
  void* const detached = Get(4 * kMiB, 1);
  ASSERT_EQ(heap_->EndCapture(*pool, StreamNumber(1)), absl::OkStatus());
  EXPECT_EQ(heap_->Free(detached, StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(heap_->DetachStream(StreamNumber(2)), absl::OkStatus());
  streams_->Break(StreamNumber(2));
  EXPECT_EQ(heap_->Free(output, StreamNumber(1)), absl::OkStatus());
  heap_->ClosePool(*pool);
  const int waits = streams_->waits();
  EXPECT_EQ(Get(4 * kMiB, 3), detached);
  EXPECT_EQ(streams_->waits(), waits);
  EXPECT_EQ(Get(4 * kMiB, 3), output);
  EXPECT_EQ(streams_->waits(), waits + 1) << "stream 1 may still write to it";
  Free(between);
}

TEST_F(HeapCoreTest, DuringACaptureNoEventIsMadeAndNoLeaseGivenBack) {
  Make({4 * kMiB, 4 * kMiB, absl::ZeroDuration()});
  const absl::StatusOr<PoolId> pool = heap_->OpenPool(2 * kMiB);
  ASSERT_TRUE(pool.ok()) << pool.status();
  void* const recorded = Get(4 * kMiB, 1);
  void* const plain = Get(4 * kMiB, 1);
  EXPECT_EQ(heap_->RecordStream(recorded, StreamNumber(2)), absl::OkStatus());
  ASSERT_EQ(heap_->BeginCapture(*pool, StreamNumber(5)), absl::OkStatus());
  Free(recorded);
  Free(plain);
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 0U);
  EXPECT_NE(Get(4 * kMiB, 3), plain);
  EXPECT_TRUE(absl::IsFailedPrecondition(heap_->DetachStream(StreamNumber(1))));
  LimitTo(0);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(4 * kMiB, 3)));
  EXPECT_EQ(streams_->records(), 0);
  EXPECT_EQ(streams_->waits(), 0);
  ASSERT_EQ(heap_->EndCapture(*pool, StreamNumber(5)), absl::OkStatus());
  EXPECT_EQ(streams_->records(), 1);  // of what was recorded
  streams_->FinishAll(StreamNumber(2));
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 8 * kMiB);
}

// A heap that grows again and again, so that it asks for leases ahead of need.
class HeapCoreAheadTest : public HeapCoreTest {
 protected:
  HeapCoreAheadTest() {
    Make({.least_growth_bytes = 64 * kMiB,
          .most_growth_bytes = 64 * kMiB,
          .wait = absl::Seconds(1),
          .on_empty = [this](uint64_t bytes) { told_.push_back(bytes); },
          .growth_run = std::chrono::hours(1)});
    pool_ = heap_->OpenPool(2 * kMiB).value();
    Get(60 * kMiB, 2);
  }
  // The empty bytes by then were asked for ahead.
  void AskAhead() {
    Get(60 * kMiB, 2);
    ASSERT_EQ(heap_->statistics().empty_bytes, 64 * kMiB);
    told_.clear();
  }

  PoolId pool_ = kGeneral;
  std::vector<uint64_t> told_;  // wakes the one who calls ReturnAhead
};

TEST_F(HeapCoreAheadTest, NothingIsAskedForAheadDuringACapture) {
  ASSERT_EQ(heap_->BeginCapture(pool_, StreamNumber(1)), absl::OkStatus());
  Asked();
  Get(60 * kMiB, 2);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(64 * kMiB));
  ASSERT_EQ(heap_->EndCapture(pool_, StreamNumber(1)), absl::OkStatus());
  Get(60 * kMiB, 2);
  EXPECT_EQ(Asked().size(), 2U);
}

TEST_F(HeapCoreAheadTest, WhatACaptureKeptGoesBackAfterTheLastOne) {
  AskAhead();
  const uint64_t leased = LeasedBytes();
  const PoolId other = heap_->OpenPool(2 * kMiB).value();
  ASSERT_EQ(heap_->BeginCapture(pool_, StreamNumber(1)), absl::OkStatus());
  ASSERT_EQ(heap_->BeginCapture(other, StreamNumber(3)), absl::OkStatus());
  told_.clear();
  heap_->ReturnAhead();
  EXPECT_EQ(LeasedBytes(), leased + 2 * kMiB);
  ASSERT_EQ(heap_->EndCapture(pool_, StreamNumber(1)), absl::OkStatus());
  EXPECT_THAT(told_, ::testing::IsEmpty());
  heap_->ClosePool(other);  // as good as its end
  EXPECT_THAT(told_, ::testing::Contains(64 * kMiB));
  heap_->ReturnAhead();
  EXPECT_EQ(heap_->statistics().empty_bytes, 2 * kMiB);  // the pool's
}

TEST_F(HeapCoreAheadTest, WhatAWaitInVainKeptGoesBackAfterIt) {
  AskAhead();
  LimitTo(LeasedBytes());
  EXPECT_TRUE(absl::IsResourceExhausted(heap_->Prepare(1024 * kMiB)));
  EXPECT_THAT(told_, ::testing::Contains(64 * kMiB));
}

// A capture's pool, and streams beside it that copy what it makes.
class HeapCoreGraphsTest : public HeapCoreTest {
 protected:
  HeapCoreGraphsTest() : pool_(heap_->OpenPool(8 * kMiB).value()) {}
  void Begin(uintptr_t stream) {
    ASSERT_EQ(heap_->BeginCapture(pool_, StreamNumber(stream)),
              absl::OkStatus());
  }
  void End(uintptr_t stream) {
    ASSERT_EQ(heap_->EndCapture(pool_, StreamNumber(stream)), absl::OkStatus());
  }
  void Record(void* block, uintptr_t stream) {
    EXPECT_EQ(heap_->RecordStream(block, StreamNumber(stream)),
              absl::OkStatus());
  }
  // The block that a capture of its own gets.
  void* GetInACapture() {
    Begin(7);
    void* const block =
        heap_->Allocate(8 * kMiB, StreamNumber(7)).value_or(nullptr);
    if (block != nullptr) Free(block);
    End(7);
    return block;
  }
  void FreeOn(void* block, uintptr_t stream) {
    EXPECT_EQ(heap_->Free(block, StreamNumber(stream)), absl::OkStatus());
  }
  // It is in use until `stream` is done, and no event was made before.
  void ExpectHeldFor(uintptr_t stream, void* block, int records = 0) {
    EXPECT_EQ(streams_->records(), records + 1);
    EXPECT_EQ(heap_->statistics().held_bytes, 8 * kMiB);
    EXPECT_EQ(GetInACapture(), nullptr) << "a stream may still read it";
    streams_->FinishAll(StreamNumber(stream));
    EXPECT_EQ(GetInACapture(), block);
    EXPECT_EQ(streams_->waits(), 0);
  }

  const PoolId pool_;
};

TEST_F(HeapCoreGraphsTest, WhatACaptureFreesWaitsForItsEndAlone) {
  Begin(1);
  Begin(2);
  void* const block = Get(8 * kMiB, 1);
  Record(block, 2);
  Free(block);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 1)));
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(1);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(2);
  EXPECT_EQ(GetInACapture(), block);
  EXPECT_EQ(streams_->records(), 0);
}

TEST_F(HeapCoreGraphsTest, AnOutputFreedInALaterCaptureWaitsForItsReaders) {
  Begin(1);
  void* const output = Get(8 * kMiB, 1);
  Record(output, 2);
  End(1);
  Begin(2);  // it has copied the output before
  Begin(1);
  Free(output);
  End(1);
  End(2);
  ExpectHeldFor(2, output);
}

TEST_F(HeapCoreGraphsTest, AnOutputFreedOnTheStreamOfItsReaderWaitsForIt) {
  for (const bool recorded : {false, true}) {
    SCOPED_TRACE(recorded);
    const int records = streams_->records();
    Begin(1);
    void* const output = Get(8 * kMiB, 1);
    End(1);
    if (recorded) Record(output, 2);
    FreeOn(output, 2);  // it copies the output
    ExpectHeldFor(2, output, records);
  }
}

TEST_F(HeapCoreGraphsTest, AReadersFreeAmidALaterCaptureIsWaitedForAfterIt) {
  Begin(1);
  void* const output = Get(8 * kMiB, 1);
  End(1);
  Begin(1);
  FreeOn(output, 2);
  EXPECT_EQ(streams_->records(), 0);
  End(1);
  ExpectHeldFor(2, output);
}

TEST_F(HeapCoreGraphsTest, AnotherStreamOfTheCaptureFreesInTheOrderOfTheGraph) {
  Begin(1);
  Begin(2);
  void* const block = Get(8 * kMiB, 1);
  FreeOn(block, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), block);
  Free(block);
  End(1);
  End(2);
  EXPECT_EQ(streams_->records(), 0);
}

TEST_F(HeapCoreGraphsTest, AReaderOutsideOfTheCaptureIsWaitedFor) {
  Begin(1);
  Begin(2);
  void* const block = Get(8 * kMiB, 1);
  Record(block, 2);
  Record(block, 3);
  Free(block);
  End(2);
  End(1);
  ExpectHeldFor(3, block);
}

TEST_F(HeapCoreGraphsTest, AnotherCaptureOfThePoolIsNotTheBlocks) {
  Begin(1);
  void* const output = Get(8 * kMiB, 1);
  Begin(2);
  End(1);
  Record(output, 3);
  Free(output);
  End(2);
  ExpectHeldFor(3, output);
}

TEST_F(HeapCoreGraphsTest, APoolThatIsClosedDoesNotLendWhatIsStillRead) {
  LimitTo(0);
  Begin(1);
  void* const output = Get(8 * kMiB, 1);
  End(1);
  Record(output, 2);
  Begin(1);
  Free(output);
  heap_->ClosePool(pool_);
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 0U);
  streams_->FinishAll(StreamNumber(2));
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 8 * kMiB);
}

TEST_F(HeapCoreTest, CapturesThatDoNotMatchAreRefused) {
  const absl::StatusOr<PoolId> one = heap_->OpenPool(kMiB);
  const absl::StatusOr<PoolId> two = heap_->OpenPool(kMiB);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(heap_->OpenPool(0).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(heap_->EndCapture(*one, StreamNumber(1))));
  EXPECT_EQ(heap_->BeginCapture(*one, StreamNumber(1)), absl::OkStatus());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(heap_->BeginCapture(*one, StreamNumber(1))));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(heap_->BeginCapture(*two, StreamNumber(1))));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(heap_->EndCapture(*two, StreamNumber(1))));
  EXPECT_EQ(heap_->EndCapture(*one, StreamNumber(1)), absl::OkStatus());
}

}  // namespace
}  // namespace gmb::internal
