// The heap with many threads and real bytes: what one thread wrote into its
// block is there until it is freed, whoever frees it, and no two threads ever
// have the same bytes. ThreadSanitizer sees a race on the bytes if they do, or
// if a free does not come before the next allocation of the place.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/heap/brief_mutex.h"
#include "client/heap/heap_core.h"
#include "device/devices.h"

namespace gmb::internal {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;

void* StreamNumber(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT: a name, not an address
}

// This process's own memory, and how much of it is out.
class HostSource final : public ChunkSource {
 public:
  explicit HostSource(std::atomic<uint64_t>* out) : out_(out) {}
  absl::StatusOr<std::unique_ptr<ChunkMemory>> Acquire(
      uint64_t bytes, absl::Duration /*wait*/) override {
    EXPECT_EQ(bytes % kBlockBytes, 0U) << bytes;
    return std::make_unique<Memory>(out_, bytes);
  }
  absl::StatusOr<std::vector<std::unique_ptr<ChunkMemory>>> AcquireWithMore(
      uint64_t bytes, size_t ahead) override {
    std::vector<std::unique_ptr<ChunkMemory>> all;
    for (size_t i = 0; i <= ahead; ++i) {
      EXPECT_EQ(bytes % kBlockBytes, 0U) << bytes;
      all.push_back(std::make_unique<Memory>(out_, bytes));
    }
    return all;
  }

 private:
  class Memory final : public ChunkMemory {
   public:
    Memory(std::atomic<uint64_t>* out, uint64_t bytes)
        : out_(out),
          bytes_(bytes),
          data_(::operator new (bytes, std::align_val_t{kBlockBytes})) {
      *out_ += bytes;
    }
    ~Memory() override { Release().IgnoreError(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* data() const override { return data_; }
    uint64_t size_bytes() const override { return bytes_; }
    absl::Status Release() override {
      if (data_ == nullptr) return absl::OkStatus();
      ::operator delete (std::exchange(data_, nullptr),
                         std::align_val_t{kBlockBytes});
      *out_ -= bytes_;
      return absl::OkStatus();
    }

   private:
    std::atomic<uint64_t>* const out_;
    const uint64_t bytes_;
    void* data_;
  };

  std::atomic<uint64_t>* const out_;
};

// A block with a mark of its owner's at its beginning, middle and end.
struct Marked {
  uint64_t* words;
  uint64_t count;
  uint64_t mark;

  void Write() const {
    for (uint64_t at : {uint64_t{0}, count / 2, count - 1}) words[at] = mark;
  }
  bool Holds() const {
    return words[0] == mark && words[count / 2] == mark &&
           words[count - 1] == mark;
  }
};

class HeapThreadsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uintptr_t kThreads = 6;
  static constexpr int kSteps = 3000;

  HeapThreadsTest()
      : heap_(std::make_unique<HeapCore>(
            std::make_unique<HostSource>(&out_),
            *device::OpenStreamFences(
                {.kind = device::DeviceKind::kHost, .uuid = "", .name = ""}),
            HeapCore::Options{.least_growth_bytes = kMiB,
                              .most_growth_bytes = 4 * kMiB,
                              .wait = absl::ZeroDuration(),
                              .growth_run = std::chrono::hours(1)})) {}

  void Work(uintptr_t thread);
  void Capture(uintptr_t thread, PoolId pool, std::mt19937_64& random);
  void Allocate(uintptr_t thread, std::mt19937_64& random,
                std::vector<Marked>* live);
  void Free(uintptr_t thread, const Marked& block, std::mt19937_64& random);
  // Gives one to the others, or takes one of theirs.
  void Exchange(std::vector<Marked>* live, bool give);
  void CheckStatistics();

  void Expect(bool holds) { failed_ += holds ? 0 : 1; }

  std::atomic<uint64_t> out_ = 0;
  std::unique_ptr<HeapCore> heap_;
  std::atomic<uint64_t> marks_ = 0;
  std::atomic<int> failed_ = 0;
  base::Mutex mu_;
  std::vector<Marked> given_ ABSL_GUARDED_BY(mu_);
};

void HeapThreadsTest::Allocate(uintptr_t thread, std::mt19937_64& random,
                               std::vector<Marked>* live) {
  const uint64_t most = random() % 16 == 0 ? 2 * kMiB : 64 * kKiB;
  const uint64_t bytes = 8 + random() % most;
  const auto got = heap_->Allocate(bytes, StreamNumber(thread));
  Expect(got.ok());
  if (!got.ok()) return;
  Expect(reinterpret_cast<uintptr_t>(*got) % kBlockBytes == 0);
  live->push_back({static_cast<uint64_t*>(*got), bytes / 8, ++marks_});
  live->back().Write();
}

void HeapThreadsTest::Free(uintptr_t thread, const Marked& block,
                           std::mt19937_64& random) {
  Expect(block.Holds());
  if (random() % 8 == 0) {
    const uintptr_t other = 1 + random() % kThreads;
    Expect(heap_->RecordStream(block.words, StreamNumber(other)).ok());
  }
  Expect(heap_->Free(block.words, StreamNumber(thread)).ok());
}

void HeapThreadsTest::Exchange(std::vector<Marked>* live, bool give) {
  base::MutexLock lock(&mu_);
  std::vector<Marked>& from = give ? *live : given_;
  std::vector<Marked>& to = give ? given_ : *live;
  if (from.empty()) return;
  to.push_back(from.back());
  from.pop_back();
}

void HeapThreadsTest::Capture(uintptr_t thread, PoolId pool,
                              std::mt19937_64& random) {
  Expect(heap_->BeginCapture(pool, StreamNumber(thread)).ok());
  std::vector<Marked> live;
  for (int i = 0; i < 4; ++i) {
    const auto got =
        heap_->Allocate(8 + random() % (64 * kKiB), StreamNumber(thread));
    Expect(got.ok());
    if (!got.ok()) continue;
    live.push_back({static_cast<uint64_t*>(*got), 1, ++marks_});
    live.back().Write();
  }
  for (const Marked& block : live) Free(thread, block, random);
  Expect(heap_->EndCapture(pool, StreamNumber(thread)).ok());
}

void HeapThreadsTest::CheckStatistics() {
  const HeapStatistics now = heap_->statistics();
  Expect(now.allocated_bytes + now.held_bytes + now.empty_bytes <=
         now.leased_bytes);
  Expect(now.allocated_bytes <= now.peak_allocated_bytes);
  Expect(now.blocks == now.allocations - now.frees);
}

void HeapThreadsTest::Work(uintptr_t thread) {
  std::mt19937_64 random(GetParam() * 1000 + thread);
  std::vector<Marked> live;
  const auto pool = heap_->OpenPool(kMiB);
  Expect(pool.ok());
  for (int step = 0; step < kSteps; ++step) {
    const uint64_t what = random() % 16;
    if (what < 7 && live.size() < 24) {
      Allocate(thread, random, &live);
    } else if (what < 13 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      Free(thread, live.back(), random);
      live.pop_back();
    } else if (what < 15) {
      Exchange(&live, what == 13);
    } else if (step % 16 == 0) {
      Capture(thread, *pool, random);
    } else if (step % 16 == 1) {
      heap_->Trim(4 * kMiB);
    } else if (step % 16 == 2) {
      heap_->ReturnAhead();
    } else {
      CheckStatistics();
    }
  }
  for (const Marked& block : live) Free(thread, block, random);
  heap_->ClosePool(*pool);
}

TEST_P(HeapThreadsTest, NobodyHasAnothersBytes) {
  std::printf("seed %lu\n", GetParam());
  std::vector<std::thread> threads;
  for (uintptr_t t = 1; t <= kThreads; ++t)
    threads.emplace_back([this, t] { Work(t); });
  for (std::thread& thread : threads) thread.join();
  {
    base::MutexLock lock(&mu_);
    std::mt19937_64 random(GetParam());
    for (const Marked& block : given_) Free(1, block, random);
  }
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(heap_->statistics().blocks, 0U);
  EXPECT_EQ(heap_->statistics().allocated_bytes, 0U);
  heap_->Trim(~uint64_t{0});
  EXPECT_EQ(heap_->statistics().leased_bytes, 0U);
  EXPECT_EQ(out_, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HeapThreadsTest,
                         ::testing::Range<uint64_t>(1, 5));

TEST(BriefMutexTest, OneAtATime) {
  BriefMutex mu;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const BriefLock lock(&mu);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 160000U);
}

// Those who wait for longer than they look are woken.
TEST(BriefMutexTest, IsHeldForLong) {
  BriefMutex mu;
  std::atomic<int> waiting = 0;
  int entered = 0;
  std::vector<std::thread> threads;
  mu.Lock();
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ++waiting;
      const BriefLock lock(&mu);
      ++entered;
    });
  }
  while (waiting < 4) std::this_thread::yield();
  // Time in which they fall asleep, if they are scheduled: it is right without.
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(entered, 0);
  mu.Unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 4);
}

}  // namespace
}  // namespace gmb::internal
