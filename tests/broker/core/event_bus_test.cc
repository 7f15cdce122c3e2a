#include "broker/core/event_bus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

namespace gmb::broker {
namespace {

v1::Event Numbered(uint64_t number) {
  v1::Event event;
  event.set_kind("test");
  event.set_bytes(number);
  return event;
}

TEST(EventBus, DeliversInOrderToEveryListener) {
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  {
    EventBus bus;
    (void)bus.Subscribe(
        [&](const v1::Event& e) { first.push_back(e.bytes()); });
    (void)bus.Subscribe(
        [&](const v1::Event& e) { second.push_back(e.bytes()); });
    for (uint64_t i = 0; i < 1'000; ++i) bus.Publish(Numbered(i));
  }  // delivers what is queued
  ASSERT_EQ(first.size(), 1'000U);
  for (uint64_t i = 0; i < 1'000; ++i) EXPECT_EQ(first[i], i);
  EXPECT_EQ(first, second);
}

TEST(EventBus, AnUnsubscribedListenerIsCalledNoMore) {
  EventBus bus;
  int calls = 0;
  const uint64_t gone = bus.Subscribe([&](const v1::Event&) { ++calls; });
  std::promise<void> delivered;
  (void)bus.Subscribe([&](const v1::Event&) { delivered.set_value(); });
  bus.Unsubscribe(gone);
  bus.Publish(Numbered(1));
  bus.Wake();
  delivered.get_future().wait();
  EXPECT_EQ(calls, 0);
}

TEST(EventBus, WhatASlowReaderMissesIsCountedAndTold) {
  constexpr uint64_t kLost = 5;
  std::vector<v1::Event> seen;
  std::promise<void> stuck;
  std::promise<void> go_on;
  std::promise<void> caught_up;
  {
    EventBus bus;
    (void)bus.Subscribe([&](const v1::Event& event) {
      seen.push_back(event);
      if (seen.size() == 1) {
        stuck.set_value();
        go_on.get_future().wait();
      }
      if (seen.size() == 1 + EventBus::kMaxQueued) caught_up.set_value();
    });
    uint64_t number = 0;
    bus.Publish(Numbered(number++));
    bus.Wake();
    stuck.get_future().wait();  // the queue is empty, and is not read
    for (uint64_t i = 0; i < EventBus::kMaxQueued + kLost; ++i)
      bus.Publish(Numbered(number++));
    bus.Wake();
    go_on.set_value();
    caught_up.get_future().wait();
    bus.Publish(Numbered(number++));
    bus.Publish(Numbered(number++));
  }
  ASSERT_EQ(seen.size(), 1 + EventBus::kMaxQueued + 2);
  const v1::Event& next = seen[seen.size() - 2];
  EXPECT_EQ(next.missed(), kLost);
  EXPECT_EQ(next.bytes(), seen[seen.size() - 3].bytes() + 1 + kLost);
  EXPECT_EQ(seen.back().missed(), 0U) << "told once";
  uint64_t missed = 0;
  for (const v1::Event& event : seen) missed += event.missed();
  EXPECT_EQ(missed, kLost);
}

}  // namespace
}  // namespace gmb::broker
