// The heap with streams that come to an end when the test says so, and a source
// of chunks that can refuse.
#include "client/heap/heap_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "gmb/error.h"
#include "ipc/mutex.h"

namespace gmb::internal {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

void* StreamNumber(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT: a name, not an address
}

// Streams that have done what the test says.
class TestStreams final : public device::StreamFences {
 public:
  absl::StatusOr<std::unique_ptr<device::StreamFence>> Record(
      void* stream) override {
    ipc::MutexLock lock(&state_->mu);
    ++state_->records;
    if (state_->broken == stream)
      return absl::InvalidArgumentError("no such stream");
    return std::make_unique<Fence>(state_, stream, ++state_->submitted[stream]);
  }
  void FinishAll(void* stream) {
    ipc::MutexLock lock(&state_->mu);
    state_->done[stream] = state_->submitted[stream];
  }
  void Break(void* stream) {
    ipc::MutexLock lock(&state_->mu);
    state_->broken = stream;
  }
  int records() const {
    ipc::MutexLock lock(&state_->mu);
    return state_->records;
  }
  int waits() const {
    ipc::MutexLock lock(&state_->mu);
    return state_->waits;
  }

 private:
  struct State {
    ipc::Mutex mu;
    std::map<void*, int> submitted ABSL_GUARDED_BY(mu);
    std::map<void*, int> done ABSL_GUARDED_BY(mu);
    std::optional<void*> broken ABSL_GUARDED_BY(mu);
    int records ABSL_GUARDED_BY(mu) = 0;
    int waits ABSL_GUARDED_BY(mu) = 0;
  };
  class Fence final : public device::StreamFence {
   public:
    Fence(std::shared_ptr<State> state, void* stream, int point)
        : state_(std::move(state)), stream_(stream), point_(point) {}
    absl::StatusOr<bool> Reached() override {
      ipc::MutexLock lock(&state_->mu);
      return state_->done[stream_] >= point_;
    }
    // As if the stream got there meanwhile.
    absl::Status Wait() override {
      ipc::MutexLock lock(&state_->mu);
      ++state_->waits;
      state_->done[stream_] = std::max(state_->done[stream_], point_);
      return absl::OkStatus();
    }

   private:
    const std::shared_ptr<State> state_;
    void* const stream_;
    const int point_;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A pool of addresses, with a limit.
class TestSource final : public ChunkSource {
 public:
  struct State {
    ipc::Mutex mu;
    uint64_t limit_bytes ABSL_GUARDED_BY(mu) = ~uint64_t{0};
    uint64_t leased_bytes ABSL_GUARDED_BY(mu) = 0;
    absl::Status refusal ABSL_GUARDED_BY(mu) =
        absl::ResourceExhaustedError("over the limit");
    std::vector<uint64_t> asked ABSL_GUARDED_BY(mu);
    std::vector<absl::Duration> waits ABSL_GUARDED_BY(mu);
    uintptr_t next ABSL_GUARDED_BY(mu) = uintptr_t{1} << 40;
  };
  explicit TestSource(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  absl::StatusOr<std::unique_ptr<ChunkMemory>> Acquire(
      uint64_t bytes, absl::Duration wait) override {
    ipc::MutexLock lock(&state_->mu);
    EXPECT_EQ(bytes % kBlockBytes, 0U) << bytes;
    state_->asked.push_back(bytes);
    state_->waits.push_back(wait);
    const uint64_t rounded = (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    if (state_->leased_bytes + rounded > state_->limit_bytes)
      return state_->refusal;
    state_->leased_bytes += rounded;
    state_->next += uintptr_t{1} << 32;
    return std::make_unique<Memory>(state_, state_->next, rounded);
  }

 private:
  class Memory final : public ChunkMemory {
   public:
    Memory(std::shared_ptr<State> state, uintptr_t address, uint64_t bytes)
        : state_(std::move(state)), address_(address), bytes_(bytes) {}
    ~Memory() override { Release().IgnoreError(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* data() const override {
      return reinterpret_cast<void*>(address_);  // NOLINT: never touched
    }
    uint64_t size_bytes() const override { return bytes_; }
    absl::Status Release() override {
      ipc::MutexLock lock(&state_->mu);
      state_->leased_bytes -= std::exchange(bytes_, 0);
      return absl::OkStatus();
    }

   private:
    const std::shared_ptr<State> state_;
    const uintptr_t address_;
    uint64_t bytes_;
  };
  const std::shared_ptr<State> state_;
};

class HeapCoreTest : public ::testing::Test {
 protected:
  HeapCoreTest() { Make({64 * kMiB, 1024 * kMiB, absl::ZeroDuration()}); }
  void Make(HeapCore::Options options) {
    heap_.reset();
    auto streams = std::make_unique<TestStreams>();
    streams_ = streams.get();
    heap_ = std::make_unique<HeapCore>(std::make_unique<TestSource>(source_),
                                       std::move(streams), std::move(options));
  }
  void LimitTo(uint64_t bytes) {
    ipc::MutexLock lock(&source_->mu);
    source_->limit_bytes = bytes;
  }
  void RefuseWith(absl::Status status) {
    ipc::MutexLock lock(&source_->mu);
    source_->refusal = std::move(status);
  }
  std::vector<uint64_t> Asked() {
    ipc::MutexLock lock(&source_->mu);
    return std::exchange(source_->asked, {});
  }
  uint64_t LeasedBytes() {
    ipc::MutexLock lock(&source_->mu);
    return source_->leased_bytes;
  }
  void* Get(uint64_t bytes, uintptr_t stream = 1) {
    absl::StatusOr<void*> got = heap_->Allocate(bytes, StreamNumber(stream));
    EXPECT_TRUE(got.ok()) << got.status();
    return got.value_or(nullptr);
  }
  absl::Status Refused(uint64_t bytes, uintptr_t stream = 1) {
    return heap_->Allocate(bytes, StreamNumber(stream)).status();
  }
  void Free(void* address) {
    EXPECT_EQ(heap_->Free(address, std::nullopt), absl::OkStatus());
  }

  const std::shared_ptr<TestSource::State> source_ =
      std::make_shared<TestSource::State>();
  TestStreams* streams_ = nullptr;
  std::unique_ptr<HeapCore> heap_;
};

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

TEST_F(HeapCoreTest, ItGrowsByAQuarterOfWhatItHas) {
  Get(64 * kMiB);
  Get(256 * kMiB);
  Get(kMiB);
  Get(960 * kMiB);
  Get(320 * kMiB);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(64 * kMiB, 256 * kMiB, 80 * kMiB,
                                              960 * kMiB, 320 * kMiB));
  Get(2048 * kMiB);
  EXPECT_THAT(Asked(), ::testing::ElementsAre(2048 * kMiB));
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
  ipc::MutexLock lock(&source_->mu);
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

TEST_F(HeapCoreTest, ABlockWhoseStreamIsGoneIsReportedAndNeverUsedAgain) {
  void* const block = Get(64 * kMiB, 1);
  EXPECT_EQ(heap_->RecordStream(block, StreamNumber(9)), absl::OkStatus());
  streams_->Break(StreamNumber(9));
  EXPECT_TRUE(absl::IsInvalidArgument(heap_->Free(block, std::nullopt)));
  EXPECT_NE(Get(64 * kMiB, 1), block);
  EXPECT_EQ(heap_->Trim(~uint64_t{0}), 0U);
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
  // What a capture of its own finds.
  void* GetInACapture() {
    Begin(7);
    void* const block =
        heap_->Allocate(8 * kMiB, StreamNumber(7)).value_or(nullptr);
    if (block != nullptr) Free(block);
    End(7);
    return block;
  }
  // It is in use until `stream` is done, and no event is made before.
  void ExpectHeldFor(uintptr_t stream, void* block) {
    EXPECT_EQ(streams_->records(), 1);
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
