#ifndef GMB_TESTS_CLIENT_HEAP_HEAP_CORE_FIXTURE_H_
#define GMB_TESTS_CLIENT_HEAP_HEAP_CORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/heap/heap_core.h"

// The heap with streams that come to an end when the test says so, and a source
// of chunks that can refuse.
namespace gmb::internal {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

inline void* StreamNumber(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT: a name, not an address
}

// Streams that have done what the test says.
class TestStreams final : public device::StreamFences {
 public:
  absl::StatusOr<std::unique_ptr<device::StreamFence>> Record(
      void* stream) override {
    base::MutexLock lock(&state_->mu);
    ++state_->records;
    if (state_->broken == stream)
      return absl::InvalidArgumentError("no such stream");
    ++state_->fences[stream];
    return std::make_unique<Fence>(state_, stream, ++state_->submitted[stream]);
  }
  // As if all of them got there meanwhile.
  absl::Status WaitForAll() override {
    base::MutexLock lock(&state_->mu);
    if (!state_->fault.ok()) return state_->fault;
    state_->done = state_->submitted;
    return absl::OkStatus();
  }
  void FinishAll(void* stream) {
    base::MutexLock lock(&state_->mu);
    state_->done[stream] = state_->submitted[stream];
  }
  // The device has met one: nothing can be waited for.
  void Fault(absl::Status why) {
    base::MutexLock lock(&state_->mu);
    state_->fault = std::move(why);
  }
  // Those in the stream that are there.
  int fences(void* stream) const {
    base::MutexLock lock(&state_->mu);
    const auto found = state_->fences.find(stream);
    return found == state_->fences.end() ? 0 : found->second;
  }
  void Break(void* stream) {
    base::MutexLock lock(&state_->mu);
    state_->broken = stream;
  }
  int records() const {
    base::MutexLock lock(&state_->mu);
    return state_->records;
  }
  int waits() const {
    base::MutexLock lock(&state_->mu);
    return state_->waits;
  }

 private:
  struct State {
    base::Mutex mu;
    std::map<void*, int> submitted ABSL_GUARDED_BY(mu);
    std::map<void*, int> done ABSL_GUARDED_BY(mu);
    std::optional<void*> broken ABSL_GUARDED_BY(mu);
    int records ABSL_GUARDED_BY(mu) = 0;
    int waits ABSL_GUARDED_BY(mu) = 0;
    std::map<void*, int> fences ABSL_GUARDED_BY(mu);
    absl::Status fault ABSL_GUARDED_BY(mu);
  };
  class Fence final : public device::StreamFence {
   public:
    Fence(std::shared_ptr<State> state, void* stream, int point)
        : state_(std::move(state)), stream_(stream), point_(point) {}
    ~Fence() override {
      base::MutexLock lock(&state_->mu);
      --state_->fences[stream_];
    }
    Fence(const Fence&) = delete;
    Fence& operator=(const Fence&) = delete;
    absl::StatusOr<bool> Reached() override {
      base::MutexLock lock(&state_->mu);
      return state_->done[stream_] >= point_;
    }
    // As if the stream got there meanwhile.
    absl::Status Wait() override {
      base::MutexLock lock(&state_->mu);
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
    base::Mutex mu;
    uint64_t limit_bytes ABSL_GUARDED_BY(mu) = ~uint64_t{0};
    uint64_t leased_bytes ABSL_GUARDED_BY(mu) = 0;
    absl::Status refusal ABSL_GUARDED_BY(mu) =
        absl::ResourceExhaustedError("over the limit");
    std::vector<uint64_t> asked ABSL_GUARDED_BY(mu);
    std::vector<absl::Duration> waits ABSL_GUARDED_BY(mu);
    int questions ABSL_GUARDED_BY(mu) = 0;
    uintptr_t next ABSL_GUARDED_BY(mu) = uintptr_t{1} << 40;
  };
  explicit TestSource(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  absl::StatusOr<std::unique_ptr<ChunkMemory>> Acquire(
      uint64_t bytes, absl::Duration wait) override {
    base::MutexLock lock(&state_->mu);
    ++state_->questions;
    return Lease(bytes, wait);
  }
  absl::StatusOr<std::vector<std::unique_ptr<ChunkMemory>>> AcquireWithMore(
      uint64_t bytes, size_t ahead) override {
    base::MutexLock lock(&state_->mu);
    ++state_->questions;
    std::vector<std::unique_ptr<ChunkMemory>> all;
    for (size_t i = 0; i <= ahead; ++i) {
      absl::StatusOr<std::unique_ptr<ChunkMemory>> one =
          Lease(bytes, absl::ZeroDuration());
      if (!one.ok() && i == 0) return one.status();
      if (one.ok()) all.push_back(*std::move(one));
    }
    return all;
  }

 private:
  absl::StatusOr<std::unique_ptr<ChunkMemory>> Lease(uint64_t bytes,
                                                     absl::Duration wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
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
      base::MutexLock lock(&state_->mu);
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
    base::MutexLock lock(&source_->mu);
    source_->limit_bytes = bytes;
  }
  void RefuseWith(absl::Status status) {
    base::MutexLock lock(&source_->mu);
    source_->refusal = std::move(status);
  }
  std::vector<uint64_t> Asked() {
    base::MutexLock lock(&source_->mu);
    return std::exchange(source_->asked, {});
  }
  int Questions() {
    base::MutexLock lock(&source_->mu);
    return std::exchange(source_->questions, 0);
  }
  uint64_t LeasedBytes() {
    base::MutexLock lock(&source_->mu);
    return source_->leased_bytes;
  }
  // Streams of all pools that something is kept of.
  size_t KnownStreams() {
    BriefLock lock(&heap_->mu_);
    return heap_->arena_.shares().of_streams().size();
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

}  // namespace gmb::internal

#endif  // GMB_TESTS_CLIENT_HEAP_HEAP_CORE_FIXTURE_H_
