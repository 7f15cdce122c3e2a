// Usage in time: from events to rows.
#include "broker/usage/usage_ledger.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "gtest/gtest.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

class SetClock : public Clock {
 public:
  quota::Instant Now() const override {
    const base::MutexLock lock(&mu_);
    return quota::Instant{} + since_;
  }
  absl::Time WallTime() const override {
    const base::MutexLock lock(&mu_);
    return absl::UnixEpoch() + absl::FromChrono(since_);
  }
  void Advance(std::chrono::nanoseconds by) {
    const base::MutexLock lock(&mu_);
    since_ += by;
  }

 private:
  mutable base::Mutex mu_;
  std::chrono::nanoseconds since_ ABSL_GUARDED_BY(mu_) =
      std::chrono::hours(24 * 10 + 23);
};

class UsageLedgerTest : public ::testing::Test {
 protected:
  std::unique_ptr<UsageLedger> Open() {
    std::string aside;
    auto store = UsageStore::Open(directory_.path(), clock_.WallTime(), &aside);
    EXPECT_TRUE(store.ok()) << store.status();
    return std::make_unique<UsageLedger>(&counts_, &clock_, *std::move(store));
  }
  void Grant(uint64_t bytes) { Publish("lease_granted", bytes); }
  void Release(uint64_t bytes) { Publish("lease_released", bytes); }
  // Returns once it is counted.
  void Publish(const std::string& kind, uint64_t bytes) {
    v1::Event event;
    event.set_kind(kind);
    event.set_tenant("a");
    event.set_device("host-0");
    event.set_bytes(bytes);
    const uint64_t before = counts_.Get().events[kind];
    bus_.Publish(event);
    bus_.Wake();
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (counts_.Get().events[kind] == before &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    ASSERT_GT(counts_.Get().events[kind], before);
  }
  [[nodiscard]] uint64_t Peak() const {
    return counts_.Get().tenants["a"].devices["host-0"].peak_bytes;
  }
  static Usage Of(UsageLedger* ledger, int64_t day) {
    const auto rows = ledger->List(day, "a", std::nullopt, 10);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return {};
    for (const auto& [key, usage] : *rows) {
      if (key.day == day) return usage;
    }
    return {};
  }

  const TempDirectory directory_;
  SetClock clock_;
  EventBus bus_;
  metrics::EventCounts counts_{&bus_, &clock_};
};

TEST_F(UsageLedgerTest, ListsUpToNowAndGoesOnAfterAStart) {
  auto ledger = Open();
  Grant(64);
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(Of(ledger.get(), 10),
            (Usage{.peak_bytes = 64, .byte_seconds = 640, .granted = 1}));
  EXPECT_EQ(Of(ledger.get(), 10).byte_seconds, 640) << "counted once";
  ledger.reset();
  ledger = Open();
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Of(ledger.get(), 11).peak_bytes, 64U) << "of the new day";
  EXPECT_EQ(Of(ledger.get(), 10).granted, 1U);
}

TEST_F(UsageLedgerTest, WritesWhatIsLeftAtItsEnd) {
  Open();
  {
    const auto ledger = Open();
    Grant(64);
  }
  std::string aside;
  const auto store =
      UsageStore::Open(directory_.path(), clock_.WallTime(), &aside);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto rows = (*store)->List(0, "", std::nullopt, 10);
  ASSERT_TRUE(rows.ok() && rows->size() == 1);
  EXPECT_EQ(rows->front().second.granted, 1U);
}

// A tenant for each job lives for less than a minute.
TEST_F(UsageLedgerTest, ADeletedTenantIsListedWithAllThatItUsed) {
  const auto ledger = Open();
  for (int job = 0; job < 2; ++job) {
    Grant(64);
    clock_.Advance(std::chrono::seconds(10));
    Release(64);
    Publish("tenant_deleted", 0);
  }
  Grant(32);
  EXPECT_EQ(Of(ledger.get(), 10),
            (Usage{.peak_bytes = 64, .byte_seconds = 1280, .granted = 3}));
  // More than it had, and made anew once more.
  Publish("tenant_deleted", 0);
  for (int i = 0; i < 5; ++i) Grant(16);
  EXPECT_EQ(Of(ledger.get(), 10).granted, 8U);
}

// Within the second that is left, not after the usual minute.
TEST_F(UsageLedgerTest, WritesByItselfBeforeTheDayEnds) {
  clock_.Advance(std::chrono::seconds(3599));
  const auto ledger = Open();
  Grant(64);
  Release(64);
  ASSERT_EQ(Peak(), 64U);
  clock_.Advance(std::chrono::milliseconds(950));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Peak() != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(Peak(), 0U) << "it was taken, and began anew";
  EXPECT_EQ(Of(ledger.get(), 10).peak_bytes, 64U);
}

}  // namespace
}  // namespace gmb::broker
