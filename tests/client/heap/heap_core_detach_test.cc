// Streams that a heap is told of the end of, and those that are gone.
#include <gtest/gtest.h>

#include "tests/client/heap/heap_core_fixture.h"

namespace gmb::internal {
namespace {

TEST_F(HeapCoreTest, ADetachedStreamsMemoryIsEverybodysAndItIsNotAskedAgain) {
  LimitTo(64 * kMiB);
  void* const block = Get(32 * kMiB, 1);
  void* const recorded = Get(32 * kMiB, 2);
  EXPECT_EQ(heap_->RecordStream(recorded, StreamNumber(1)), absl::OkStatus());
  Free(block);
  EXPECT_EQ(heap_->DetachStream(StreamNumber(1)), absl::OkStatus());
  streams_->Break(StreamNumber(1));
  EXPECT_EQ(Get(32 * kMiB, 3), block);
  Free(recorded);
  EXPECT_EQ(Get(32 * kMiB, 2), recorded);
}

TEST_F(HeapCoreTest, WhatIsHeldForADetachedStreamBecomesEverybodys) {
  LimitTo(64 * kMiB);
  void* const block = Get(32 * kMiB, 1);
  void* const other = Get(32 * kMiB, 3);
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(2)), absl::OkStatus());
  Free(block);
  EXPECT_EQ(heap_->DetachStream(StreamNumber(1)), absl::OkStatus());
  streams_->Break(StreamNumber(1));  // it is destroyed
  streams_->FinishAll(StreamNumber(2));
  EXPECT_EQ(Get(32 * kMiB, 4), block);
  Free(other);
}

TEST_F(HeapCoreTest,
       ABlockWhoseStreamIsGoneIsReportedAndHeldUntilItIsDetached) {
  void* const block = Get(64 * kMiB, 1);
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(9)), absl::OkStatus());
  streams_->Break(StreamNumber(9));
  EXPECT_TRUE(absl::IsInvalidArgument(heap_->Free(block, std::nullopt)));
  void* const other = Get(64 * kMiB, 1);
  EXPECT_NE(other, block);
  Free(other);
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 64 * kMiB);  // the other lease
  streams_->Fault(absl::UnavailableError("a fault"));
  EXPECT_TRUE(absl::IsUnavailable(heap_->DetachStream(StreamNumber(9))));
  EXPECT_EQ(heap_->statistics().held_bytes, 64 * kMiB) << "it may be used";
  streams_->Fault(absl::OkStatus());
  EXPECT_EQ(heap_->DetachStream(StreamNumber(9)), absl::OkStatus());
  EXPECT_EQ(heap_->statistics().held_bytes, 0U);
  EXPECT_EQ(Get(64 * kMiB, 1), block);
}

// It was freed on it, and no event will show that it got there.
TEST_F(HeapCoreTest, MemoryOfAStreamThatIsGoneIsEverybodysOnceItIsDetached) {
  LimitTo(64 * kMiB);
  void* const other = Get(32 * kMiB, 1);  // the lease stays
  void* const block = Get(32 * kMiB, 9);
  Free(block);
  streams_->Break(StreamNumber(9));
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(32 * kMiB, 1)));
  EXPECT_EQ(heap_->DetachStream(StreamNumber(9)), absl::OkStatus());
  EXPECT_EQ(Get(32 * kMiB, 1), block);
  Free(other);
}

// It would be asked when the stream and its context are no more.
TEST_F(HeapCoreTest, NoFenceOutlivesItsStream) {
  for (const uintptr_t detached : {2U, 3U}) {
    void* const block = Get(kMiB, 1);
    for (const uintptr_t stream : {2U, 3U}) {
      EXPECT_EQ(heap_->RecordStream(block, StreamNumber(stream)),
                absl::OkStatus());
    }
    Free(block);
    EXPECT_EQ(heap_->DetachStream(StreamNumber(detached)), absl::OkStatus());
    EXPECT_EQ(streams_->fences(StreamNumber(detached)), 0);
    EXPECT_EQ(heap_->statistics().held_bytes, kMiB) << "for the other one";
    for (const uintptr_t stream : {2U, 3U})
      streams_->FinishAll(StreamNumber(stream));
    heap_->Trim(1);
  }
}

// The names of requests, say, on host memory.
TEST_F(HeapCoreTest, NothingIsKeptOfStreamsThatAreDetached) {
  void* const kept = Get(kMiB, 1);
  const size_t known = KnownStreams();
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  for (uintptr_t stream = 2; stream < 100; ++stream) {
    Free(Get(kMiB, stream));
    ASSERT_EQ(heap_->BeginCapture(pool, StreamNumber(stream)),
              absl::OkStatus());
    Free(Get(kMiB, stream));
    ASSERT_EQ(heap_->EndCapture(pool, StreamNumber(stream)), absl::OkStatus());
    ASSERT_EQ(heap_->DetachStream(StreamNumber(stream)), absl::OkStatus());
  }
  EXPECT_EQ(heap_->DetachStream(StreamNumber(1000)), absl::OkStatus());
  EXPECT_EQ(KnownStreams(), known);
  // A block that was allocated for it is freed with another one.
  EXPECT_EQ(heap_->DetachStream(StreamNumber(1)), absl::OkStatus());
  EXPECT_EQ(heap_->Free(kept, StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(heap_->DetachStream(StreamNumber(1)), absl::OkStatus());
  EXPECT_EQ(heap_->DetachStream(StreamNumber(2)), absl::OkStatus());
  EXPECT_EQ(KnownStreams(), 0U);
  EXPECT_EQ(Get(kMiB, 3), kept);
}

}  // namespace
}  // namespace gmb::internal
