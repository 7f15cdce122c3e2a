// Events become counters, and byte-seconds.
#include "broker/metrics/event_counts.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace gmb::broker::metrics {
namespace {

class SetClock : public Clock {
 public:
  quota::Instant Now() const override {
    return quota::Instant{} + quota::Nanoseconds(now_.load());
  }
  absl::Time WallTime() const override { return absl::UnixEpoch(); }
  void Advance(std::chrono::seconds by) {
    now_ += std::chrono::nanoseconds(by).count();
  }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

class EventCountsTest : public ::testing::Test {
 protected:
  // Returns once it is counted.
  void Publish(const std::string& kind,
               const std::function<void(v1::Event&)>& fill = {}) {
    v1::Event event;
    event.set_kind(kind);
    event.set_tenant("a");
    event.set_device("host-0");
    if (fill) fill(event);
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
  void OfLease(const std::string& kind, uint64_t lease, uint64_t bytes) {
    Publish(kind, [&](v1::Event& event) {
      event.set_lease_id(lease);
      event.set_bytes(bytes);
      event.mutable_took()->set_nanos(20'000'000);
    });
  }
  DeviceCounts OnDevice() {
    return counts_.Get().tenants["a"].devices["host-0"];
  }

  SetClock clock_;
  EventBus bus_;
  EventCounts counts_{&bus_, &clock_};
};

TEST_F(EventCountsTest, ByteSecondsAreOfBytesOnTheDevice) {
  OfLease("lease_granted", 1, 100);
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_DOUBLE_EQ(OnDevice().byte_seconds, 1000);
  OfLease("lease_granted", 2, 10);
  clock_.Advance(std::chrono::seconds(1));
  OfLease("evicted", 1, 100);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(OnDevice().byte_seconds, 1000 + 110 + 10);
  OfLease("restored", 1, 100);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(OnDevice().byte_seconds, 1120 + 110);
  OfLease("evicted", 1, 100);
  OfLease("lease_released", 1, 100);  // it was away
  OfLease("lease_reclaimed", 2, 10);
  clock_.Advance(std::chrono::seconds(5));
  EXPECT_DOUBLE_EQ(OnDevice().byte_seconds, 1230);
  EXPECT_EQ(OnDevice().resident_bytes, 0U);
}

TEST_F(EventCountsTest, MovesAndWaitsHaveTheirDurations) {
  OfLease("lease_granted", 1, 100);
  OfLease("evicted", 1, 100);
  OfLease("evict_failed", 1, 100);
  OfLease("restored", 1, 100);
  OfLease("restore_failed", 1, 100);
  Counts counts = counts_.Get();
  EXPECT_DOUBLE_EQ(counts.tenants["a"].waits.sum_seconds, 0.02);
  EXPECT_EQ(counts.tenants["a"].waits.counts[5], 1U);  // up to 25 ms
  EXPECT_EQ(counts.devices["host-0"].evictions.count, 1U);
  EXPECT_EQ(counts.devices["host-0"].restores.count, 1U);
  EXPECT_EQ(OnDevice().evictions.failed, 1U);
  EXPECT_EQ(OnDevice().restores.failed, 1U);
  EXPECT_EQ(OnDevice().restores.bytes, 100U);
}

TEST_F(EventCountsTest, WhatAClientSaysIsNoLabel) {
  Publish("session_closed", [](v1::Event& event) {
    event.set_message("it broke the protocol: x\"} 1\n# EVIL");
  });
  Publish("session_closed",
          [](v1::Event& event) { event.set_message("some new reason"); });
  const auto closed = counts_.Get().tenants["a"].sessions_closed;
  EXPECT_EQ(closed.size(), 2U);
  EXPECT_EQ(closed.at("protocol"), 1U);
  EXPECT_EQ(closed.at("other"), 1U);
}

TEST_F(EventCountsTest, ADeletedTenantIsForgotten) {
  OfLease("lease_granted", 1, 100);
  Publish("tenant_deleted");
  EXPECT_TRUE(counts_.Get().tenants.empty());
  EXPECT_TRUE(counts_.TakePeaks().ended.empty()) << "nobody asked for it";
}

TEST_F(EventCountsTest, ADeletedTenantIsKeptForTheOneWhoAskedAndOnce) {
  counts_.KeepEnded();
  OfLease("lease_granted", 1, 100);
  Publish("tenant_deleted");
  EXPECT_TRUE(counts_.Get().tenants.empty());
  const Counts taken = counts_.TakePeaks();
  ASSERT_EQ(taken.ended.size(), 1U);
  EXPECT_EQ(taken.ended.begin()->second.granted, 1U);
  EXPECT_EQ(taken.ended.begin()->second.peak_bytes, 100U);
  EXPECT_TRUE(counts_.TakePeaks().ended.empty());
}

TEST_F(EventCountsTest, MissedEventsAreCounted) {
  constexpr uint64_t kPublished = EventBus::kMaxQueued + 1000;
  v1::Event event;
  event.set_kind("gate_on");
  for (uint64_t i = 0; i < kPublished; ++i) bus_.Publish(event);
  const auto counted = [&] { return counts_.Get().events["gate_on"]; };
  bus_.Wake();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (counted() < EventBus::kMaxQueued &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  Publish("draining");  // brings the news of those that were missed
  EXPECT_EQ(counts_.Get().missed + counted(), kPublished);
}

TEST_F(EventCountsTest, RefusedSessionsAreCounted) {
  counts_.AddRefusedSession("NO_SUCH_TENANT");
  EXPECT_EQ(counts_.Get().sessions_refused["NO_SUCH_TENANT"], 1U);
}

}  // namespace
}  // namespace gmb::broker::metrics
