// Blocks that are freed when all work on them has ended.
#include <gtest/gtest.h>

#include "tests/client/heap/heap_core_fixture.h"

namespace gmb::internal {
namespace {

class HeapCoreDoneTest : public HeapCoreTest {
 protected:
  HeapCoreDoneTest() { Make({8 * kMiB, 8 * kMiB, absl::ZeroDuration()}); }
  void FreeDone(void* block) {
    EXPECT_EQ(heap_->FreeDone(block), absl::OkStatus());
  }
  void Begin(PoolId pool, uintptr_t stream) {
    ASSERT_EQ(heap_->BeginCapture(pool, StreamNumber(stream)),
              absl::OkStatus());
  }
  void End(PoolId pool, uintptr_t stream) {
    ASSERT_EQ(heap_->EndCapture(pool, StreamNumber(stream)), absl::OkStatus());
  }
};

TEST_F(HeapCoreDoneTest, AnyStreamHasItAtOnce) {
  LimitTo(8 * kMiB);
  void* const block = Get(8 * kMiB, 1);
  FreeDone(block);
  EXPECT_EQ(heap_->statistics().blocks, 0U);
  EXPECT_EQ(Get(8 * kMiB, 2), block);
  EXPECT_EQ(streams_->records(), 0);
  EXPECT_EQ(streams_->waits(), 0);
}

TEST_F(HeapCoreDoneTest, OnlyALiveBlockIsFreed) {
  EXPECT_EQ(heap_->FreeDone(nullptr), absl::OkStatus());
  void* const block = Get(8 * kMiB, 1);
  FreeDone(block);
  EXPECT_TRUE(absl::IsInvalidArgument(heap_->FreeDone(block)));
  EXPECT_EQ(heap_->statistics().frees, 1U);
}

TEST_F(HeapCoreDoneTest, ARecordedStreamIsWaitedFor) {
  LimitTo(8 * kMiB);
  void* const block = Get(8 * kMiB, 1);
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(2)), absl::OkStatus());
  FreeDone(block);
  EXPECT_EQ(heap_->statistics().held_bytes, 8 * kMiB);
  streams_->FinishAll(StreamNumber(2));
  EXPECT_EQ(Get(8 * kMiB, 3), block);
  EXPECT_EQ(streams_->records(), 1) << "of the recorded stream alone";
  EXPECT_EQ(streams_->waits(), 0);
}

TEST_F(HeapCoreDoneTest, AnOutputIsFreeForTheNextCapture) {
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  Begin(pool, 1);
  void* const output = Get(8 * kMiB, 1);
  End(pool, 1);
  FreeDone(output);
  Begin(pool, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), output);
  End(pool, 2);
  EXPECT_EQ(streams_->records(), 0);
}

// Another stream of the same graph would write over it.
TEST_F(HeapCoreDoneTest, WhatACaptureStillUsesIsKeptUntilItsEnd) {
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  Begin(pool, 1);
  Begin(pool, 2);
  void* const block = Get(8 * kMiB, 1);
  FreeDone(block);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(pool, 1);
  End(pool, 2);
  Begin(pool, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), block);
  End(pool, 2);
  EXPECT_EQ(streams_->records(), 0);
}

// A graph that is being captured reads it at each launch; what its streams have
// done says nothing of that.
TEST_F(HeapCoreDoneTest, AnOutputThatALaterCaptureReadsIsKeptUntilItsEnd) {
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  Begin(pool, 1);
  void* const output = Get(8 * kMiB, 1);
  End(pool, 1);
  Begin(pool, 1);
  Begin(pool, 2);
  FreeDone(output);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(pool, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(pool, 2);
  Begin(pool, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), output);
  End(pool, 2);
  EXPECT_EQ(streams_->records(), 0);
}

TEST_F(HeapCoreDoneTest, AStreamThatWasRecordedIsWaitedForAfterALaterCapture) {
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  Begin(pool, 1);
  void* const output = Get(8 * kMiB, 1);
  End(pool, 1);
  EXPECT_EQ(heap_->RecordStream(output, StreamNumber(3)), absl::OkStatus());
  Begin(pool, 1);
  FreeDone(output);
  EXPECT_EQ(streams_->records(), 0) << "in a capture";
  End(pool, 1);
  Begin(pool, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(Refused(8 * kMiB, 2)));
  End(pool, 2);
  streams_->FinishAll(StreamNumber(3));
  Begin(pool, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), output);
  End(pool, 2);
  EXPECT_EQ(streams_->records(), 1) << "of the recorded stream alone";
}

// Its graphs are launched in no order with those of this pool.
TEST_F(HeapCoreDoneTest, ACaptureOfAnotherPoolKeepsNothing) {
  const PoolId pool = heap_->OpenPool(8 * kMiB).value();
  const PoolId other = heap_->OpenPool(8 * kMiB).value();
  Begin(pool, 1);
  void* const output = Get(8 * kMiB, 1);
  End(pool, 1);
  Begin(other, 1);
  FreeDone(output);
  Begin(pool, 2);
  EXPECT_EQ(Get(8 * kMiB, 2), output);
  End(pool, 2);
  End(other, 1);
}

}  // namespace
}  // namespace gmb::internal
