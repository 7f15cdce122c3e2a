#include "client/preload/tripwire.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <thread>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

using Words = std::array<uint64_t, 10>;
using Numbers = std::array<double, 8>;

Words words_got{};
Numbers numbers_got{};

uint64_t Unknown(uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3,
                 uint64_t w4, uint64_t w5, uint64_t w6, uint64_t w7,
                 uint64_t w8, uint64_t w9, double d0, double d1, double d2,
                 double d3, double d4, double d5, double d6, double d7) {
  words_got = {w0, w1, w2, w3, w4, w5, w6, w7, w8, w9};
  numbers_got = {d0, d1, d2, d3, d4, d5, d6, d7};
  return 0x123456789ABCDEF0;
}

template <typename Function>
Function* Behind(const char* name, Function* real) {
  return reinterpret_cast<Function*>(
      BehindTripwire(name, reinterpret_cast<void*>(real)));
}

TEST(TripwireTest, AllArgumentsAndTheAnswerPassThroughIt) {
  auto* const call = Behind("cuUnknown", &Unknown);
  ASSERT_NE(call, &Unknown);
  const Words words = {1, 2, 3, 4, 5, 6, 7, 8, 9, UINT64_MAX};
  const Numbers numbers = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, -7.5};
  for (int i = 0; i < 2; ++i) {  // tripping, and tripped
    words_got = {};
    numbers_got = {};
    EXPECT_EQ(call(words[0], words[1], words[2], words[3], words[4], words[5],
                   words[6], words[7], words[8], words[9], numbers[0],
                   numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
                   numbers[6], numbers[7]),
              0x123456789ABCDEF0);
    EXPECT_EQ(words_got, words);
    EXPECT_EQ(numbers_got, numbers);
  }
}

std::atomic<int> calls{0};
int Count(int by) { return calls += by; }

TEST(TripwireTest, ThreadsFindTheSameStubAndMayTripItAtOnce) {
  std::array<std::thread, 8> threads;
  std::array<int (*)(int), 8> found{};
  std::atomic<size_t> ready{0};
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([&, i] {
      ++ready;
      while (ready < threads.size()) std::this_thread::yield();
      found[i] = Behind("cuCount", &Count);
      found[i](2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<int (*)(int)>(found.begin(), found.end()).size(), 1U);
  EXPECT_NE(found[0], &Count);
  EXPECT_EQ(calls, 16);
  EXPECT_EQ(Behind("cuCountUnderAnotherName", &Count), found[0]);
}

}  // namespace
}  // namespace gmb::preload
