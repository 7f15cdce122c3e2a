// A heap over leases of a real broker: real bytes, and what befalls both.
#include "gmb/heap.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

class HeapTest : public ComponentTest {
 protected:
  void Start(const std::string& host_pool = "") {
    BrokerOptions options;
    options.devices = {"host:256MiB"};
    if (!host_pool.empty()) options.flags = {"--host-pool=" + host_pool};
    StartBroker(options);
    MakeTenant("a");
    MakeTenant("b");
  }
  static HeapOptions Small() {
    HeapOptions options;
    options.least_growth_bytes = 8 * kMiB;
    options.wait = absl::ZeroDuration();
    return options;
  }
  static std::unique_ptr<Heap> MakeHeap(Client* client,
                                        const HeapOptions& options = Small()) {
    auto heap = Heap::Create(client, options);
    EXPECT_TRUE(heap.ok()) << heap.status();
    return heap.ok() ? *std::move(heap) : nullptr;
  }
  static void* Get(Heap& heap, uint64_t bytes, void* stream = nullptr) {
    auto got = heap.Allocate(bytes, stream);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.value_or(nullptr);
  }
  static ErrorReason ReasonOf(const absl::Status& status) {
    return GetErrorDetail(status).value_or(ErrorDetail()).reason;
  }
  uint64_t GrantedBytes() const { return Pool().granted_bytes(); }
};

TEST_F(HeapTest, BlocksAreMemoryOfTheirOwn) {
  Start();
  const auto client = ConnectAs("a");
  const auto heap = MakeHeap(client.get());
  EXPECT_EQ(GrantedBytes(), 0U);
  std::vector<std::pair<char*, size_t>> blocks;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const size_t bytes = 1 + random() % (256 << 10);
    blocks.emplace_back(static_cast<char*>(Get(*heap, bytes)), bytes);
    std::memset(blocks.back().first, i, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [data, bytes] = blocks[i];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 512, 0U);
    EXPECT_EQ(data[0], static_cast<char>(i));
    EXPECT_EQ(data[bytes - 1], static_cast<char>(i));
    EXPECT_TRUE(heap->Free(data).ok());
  }
  const HeapStatistics statistics = heap->statistics();
  EXPECT_EQ(statistics.allocated_bytes, 0U);
  EXPECT_EQ(statistics.allocations, 200U);
  EXPECT_LE(statistics.growths, 6U);
  // Memory that was asked for ahead goes back at any time.
  EXPECT_TRUE(
      Await([&] { return heap->statistics().leased_bytes == GrantedBytes(); }));
  EXPECT_GT(heap->Trim(~uint64_t{0}), 0U);
  EXPECT_TRUE(Await([&] { return GrantedBytes() == 0; }));
}

TEST_F(HeapTest, ItsEndGivesEverythingBack) {
  Start();
  const auto client = ConnectAs("a");
  auto heap = MakeHeap(client.get());
  Get(*heap, 100 * kMiB);
  heap.reset();
  EXPECT_TRUE(Await([&] { return GrantedBytes() == 0; }));
}

TEST_F(HeapTest, OutOfMemoryCarriesTheBrokersReason) {
  Start();
  MakeTenant("small", 0, 32 * kMiB);
  const auto client = ConnectAs("small");
  const auto heap = MakeHeap(client.get());
  void* const most = Get(*heap, 30 * kMiB);
  for (const uint64_t bytes : {64 * kMiB, uint64_t{1} << 46}) {
    const absl::Status status = heap->Allocate(bytes, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(ReasonOf(status), ErrorReason::kTenantLimit) << status;
    EXPECT_GT(GetErrorDetail(status)->deficit_bytes, 0U);
  }
  EXPECT_EQ(heap->Allocate(uint64_t{1} << 60, nullptr).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_NE(Get(*heap, 2 * kMiB), nullptr);  // to the last byte of the quota
  EXPECT_EQ(heap->statistics().leased_bytes, 32 * kMiB);
  EXPECT_TRUE(heap->Free(most).ok());
  EXPECT_EQ(heap->statistics().out_of_memory, 2U);
}

TEST_F(HeapTest, WhatIsEmptyServesATenantThatWaits) {
  Start();
  std::atomic<int> own_hook = 0;
  ClientOptions options = OptionsFor(TenantDir("a"));
  options.on_trim = [&](const std::string&, uint64_t, absl::Duration) {
    ++own_hook;
  };
  auto client = Client::Connect(std::move(options));
  ASSERT_TRUE(client.ok()) << client.status();
  const auto heap = MakeHeap(client->get());
  void* const kept = Get(*heap, kMiB);
  std::memset(kept, 0x5A, kMiB);
  for (int round = 0; round < 3; ++round) {
    void* const large = Get(*heap, 200 * kMiB);
    EXPECT_TRUE(heap->Free(large).ok());
    const auto other = ConnectAs("b");
    auto lease = other->Acquire(200 * kMiB, WaitFor(kLong));
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(std::move(*lease).Release().ok());
  }
  EXPECT_EQ(own_hook, 0);  // the heap gave enough
  EXPECT_EQ(heap->statistics().returned_leases, 3U);
  EXPECT_EQ(static_cast<char*>(kept)[kMiB - 1], 0x5A);
}

TEST_F(HeapTest, WhatTheHeapCannotGiveTheApplicationIsAskedFor) {
  Start();
  Lease cache;
  std::atomic<uint64_t> asked_bytes = 0;
  ClientOptions options = OptionsFor(TenantDir("a"));
  options.on_trim = [&](const std::string&, uint64_t bytes, absl::Duration) {
    asked_bytes = bytes;
    cache = Lease();
  };
  auto client = Client::Connect(std::move(options));
  ASSERT_TRUE(client.ok()) << client.status();
  auto acquired = (*client)->Acquire(100 * kMiB);
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  cache = *std::move(acquired);
  ASSERT_TRUE((*client)->SetTrimmable("", 100 * kMiB).ok());
  const auto heap = MakeHeap(client->get());
  EXPECT_TRUE(heap->Free(Get(*heap, 120 * kMiB)).ok());
  const auto other = ConnectAs("b");
  auto lease = other->Acquire(240 * kMiB, WaitFor(kLong));
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(heap->statistics().returned_leases, 1U);
  EXPECT_GT(asked_bytes, 0U);
  // All of it, where the broker hears late that the heap has given its part.
  EXPECT_LE(asked_bytes, 220 * kMiB);
}

TEST_F(HeapTest, WithoutTrimItKeepsWhatItHas) {
  Start();
  const auto client = ConnectAs("a");
  HeapOptions options = Small();
  options.trim = false;
  const auto heap = MakeHeap(client.get(), options);
  EXPECT_TRUE(heap->Free(Get(*heap, 200 * kMiB)).ok());
  const auto other = ConnectAs("b");
  EXPECT_FALSE(
      other->Acquire(200 * kMiB, WaitFor(absl::Milliseconds(300))).ok());
  EXPECT_EQ(heap->statistics().empty_bytes, 200 * kMiB);
}

TEST_F(HeapTest, TwoHeapsOfOneProcessShareNothing) {
  Start();
  const auto client = ConnectAs("a");
  const auto one = MakeHeap(client.get());
  auto two = MakeHeap(client.get());
  void* const of_one = Get(*one, kMiB);
  void* const of_two = Get(*two, kMiB);
  EXPECT_EQ(two->Free(of_one).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(one->Free(of_two).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(one->Free(of_one).ok());
  EXPECT_TRUE(two->Free(of_two).ok());
  // Both give for one request, and the end of one does not end the other's.
  EXPECT_TRUE(one->Free(Get(*one, 100 * kMiB)).ok());
  EXPECT_TRUE(two->Free(Get(*two, 100 * kMiB)).ok());
  const auto other = ConnectAs("b");
  for (int round = 0; round < 2; ++round) {
    auto lease = other->Acquire(240 * kMiB, WaitFor(kLong));
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(std::move(*lease).Release().ok());
    two.reset();
    EXPECT_TRUE(one->Free(Get(*one, 200 * kMiB)).ok());
  }
}

TEST_F(HeapTest, BlocksAreEvictedAndComeBackWhereTheyWere) {
  Start("512MiB");
  const auto client = ConnectAs("a");
  ASSERT_TRUE(client->TurnGateOn({.park_after = absl::ZeroDuration()}).ok());
  const auto heap = MakeHeap(client.get());
  char* block = nullptr;
  {
    const auto scope = client->Enter(kLong);
    ASSERT_TRUE(scope.ok()) << scope.status();
    block = static_cast<char*>(Get(*heap, 150 * kMiB));
    std::memset(block, 0x3C, 150 * kMiB);
  }
  const auto other = ConnectAs("b");
  auto lease = other->Acquire(200 * kMiB, WaitFor(kLong));
  ASSERT_TRUE(lease.ok()) << lease.status();
  std::memset(lease->data(), 0xFF, lease->size_bytes());
  // Local, whether the memory is there or not.
  void* const beside = Get(*heap, 4096);
  EXPECT_TRUE(heap->Free(beside).ok());
  EXPECT_TRUE(std::move(*lease).Release().ok());
  const auto scope = client->Enter(kLong);
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_EQ(block[0], 0x3C);
  EXPECT_EQ(block[150 * kMiB - 1], 0x3C);
}

TEST_F(HeapTest, AnAllocationWithinTheGuaranteeWaitsForOthersMemory) {
  Start("512MiB");
  MakeTenant("owner", 128 * kMiB);
  const auto idle = ConnectAs("a");
  ASSERT_TRUE(idle->TurnGateOn({.park_after = absl::ZeroDuration()}).ok());
  auto lent = idle->Acquire(200 * kMiB, WaitFor(kLong));
  ASSERT_TRUE(lent.ok()) << lent.status();
  const auto client = ConnectAs("owner");
  HeapOptions options = Small();
  options.wait = kLong;
  const auto heap = MakeHeap(client.get(), options);
  std::memset(Get(*heap, 100 * kMiB), 1, 100 * kMiB);
}

TEST_F(HeapTest, AForkedChildIsToldAndTheParentGoesOn) {
  Start();
  const auto client = ConnectAs("a");
  auto heap = MakeHeap(client.get());
  auto graphs = heap->PrepareGraphs(kMiB);
  ASSERT_TRUE(graphs.ok()) << graphs.status();
  void* const block = Get(*heap, kMiB);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refused = [](const absl::Status& status) {
      return status.code() == absl::StatusCode::kFailedPrecondition;
    };
    const bool right =
        refused(heap->Allocate(1, nullptr).status()) &&
        refused(heap->Free(block)) &&
        refused(heap->RecordStream(block, nullptr)) &&
        refused(heap->DetachStream(nullptr)) && refused(heap->Prepare(1)) &&
        refused(heap->PrepareGraphs(1).status()) &&
        refused((*graphs)->Begin(nullptr)) && heap->Trim(1) == 0 &&
        heap->statistics().leased_bytes == 0 &&
        refused(Heap::Create(client.get()).status());
    graphs->reset();
    heap.reset();
    _exit(right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::memset(block, 1, kMiB);
  EXPECT_TRUE(heap->Free(block).ok());
  EXPECT_EQ(heap->Trim(~uint64_t{0}), 8 * kMiB);
}

TEST_F(HeapTest, WithoutItsBrokerItLivesOnWhatItHas) {
  Start();
  const auto client = ConnectAs("a");
  auto heap = MakeHeap(client.get());
  void* const block = Get(*heap, kMiB);
  std::memset(block, 0x42, kMiB);
  KillBroker();
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  void* const more = Get(*heap, 4 * kMiB);
  std::memset(more, 0x24, 4 * kMiB);
  EXPECT_EQ(heap->Allocate(64 * kMiB, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(heap->Prepare(64 * kMiB).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Heap::Create(client.get()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(static_cast<char*>(block)[kMiB - 1], 0x42);
  EXPECT_TRUE(heap->Free(block).ok());
  EXPECT_TRUE(heap->Free(more).ok());
  EXPECT_EQ(heap->Trim(~uint64_t{0}), 8 * kMiB);
}

TEST_F(HeapTest, WrongOptionsAreRefused) {
  Start();
  const auto client = ConnectAs("a");
  HeapOptions options;
  options.device = "host-7";
  EXPECT_EQ(Heap::Create(client.get(), options).status().code(),
            absl::StatusCode::kNotFound);
  options = HeapOptions();
  options.least_growth_bytes = 0;
  EXPECT_EQ(Heap::Create(client.get(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
  options.least_growth_bytes = options.most_growth_bytes + 1;
  EXPECT_EQ(Heap::Create(client.get(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(HeapTest, ManyThreadsEachSeeTheirOwnBytesWhileOthersTrim) {
  Start();
  const auto client = ConnectAs("a");
  const auto heap = MakeHeap(client.get());
  const auto other = ConnectAs("b");
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uintptr_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      void* const stream = reinterpret_cast<void*>(t);  // NOLINT: a name
      std::mt19937_64 random(t);
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = 1 + random() % (512 << 10);
        const auto got = heap->Allocate(bytes, stream);
        if (!got.ok()) {  // the other tenant has it just now
          wrong += got.status().code() != absl::StatusCode::kResourceExhausted;
          continue;
        }
        auto* const data = static_cast<unsigned char*>(*got);
        data[0] = data[bytes - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        wrong += data[0] != t || data[bytes - 1] != t;
        wrong += !heap->Free(data).ok();
      }
    });
  }
  std::thread taker([&] {
    while (!stop) {
      auto lease = other->Acquire(252 * kMiB, WaitFor(absl::Milliseconds(50)));
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  taker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(heap->statistics().blocks, 0U);
}

}  // namespace
}  // namespace gmb::component
