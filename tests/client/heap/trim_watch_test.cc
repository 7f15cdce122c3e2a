#include "client/heap/trim_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace gmb::internal {
namespace {

// The figures that were told.
class Told {
 public:
  void Add(uint64_t bytes) {
    base::MutexLock lock(&mu_);
    told_.push_back(bytes);
    changed_.NotifyAll();
  }
  // Waits until so many were; false when that takes too long.
  bool Await(size_t count) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    base::MutexLock lock(&mu_);
    while (told_.size() < count) {
      if (!changed_.WaitUntil(&mu_, deadline)) return false;
    }
    return true;
  }
  bool AwaitLast(uint64_t bytes) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    base::MutexLock lock(&mu_);
    while (told_.empty() || told_.back() != bytes) {
      if (!changed_.WaitUntil(&mu_, deadline)) return false;
    }
    return true;
  }
  size_t count() {
    base::MutexLock lock(&mu_);
    return told_.size();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<uint64_t> told_ ABSL_GUARDED_BY(mu_);
};

TEST(TrimWatchTest, TheLastChangeIsToldAndNotEachOne) {
  Told told;
  TrimWatch watch([&](uint64_t bytes) { told.Add(bytes); });
  for (uint64_t i = 1; i <= 100'000; ++i) watch.Changed(i);
  EXPECT_TRUE(told.AwaitLast(100'000));
  EXPECT_LT(told.count(), 1000U);
}

TEST(TrimWatchTest, WhatIsTheSameIsToldAgainWhenItIsToBeRepeated) {
  Told told;
  TrimWatch watch([&](uint64_t bytes) { told.Add(bytes); });
  watch.Repeat();
  ASSERT_TRUE(told.Await(1));
  watch.Changed(0);
  watch.Repeat();
  EXPECT_TRUE(told.Await(2));
}

TEST(TrimWatchTest, AfterAChangeThereIsARest) {
  Told told;
  Told rests;
  TrimWatch watch([&](uint64_t bytes) { told.Add(bytes); },
                  [&] { rests.Add(0); });
  watch.Changed(1);
  EXPECT_TRUE(told.Await(1));
  EXPECT_TRUE(rests.Await(1));
  watch.Changed(1);  // there is something to do that was in the way before
  EXPECT_TRUE(rests.Await(2));
  EXPECT_EQ(told.count(), 1U);
}

// A repetition that comes while a change is taken must not be lost. A round is
// nearly all waiting, so many go on at once.
TEST(TrimWatchTest, EachRepetitionIsHeardWheneverItComes) {
  constexpr int kRounds = 300, kAtOnce = 20;
  const auto rounds = [](int first) {
    for (int round = first; round < kRounds; round += kAtOnce) {
      Told told;
      TrimWatch watch([&](uint64_t bytes) { told.Add(bytes); });
      watch.Changed(0);  // nothing to tell, but it wakes
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      watch.Repeat();
      ASSERT_TRUE(told.Await(1)) << round;
    }
  };
  std::vector<std::thread> threads;
  for (int first = 0; first < kAtOnce; ++first)
    threads.emplace_back(rounds, first);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gmb::internal
