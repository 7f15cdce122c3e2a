#include "client/preload/captures.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

Captures::TimePoint Soon(std::chrono::nanoseconds from_now) {
  return std::chrono::steady_clock::now() + from_now;
}

CUstream Name(uintptr_t number) { return reinterpret_cast<CUstream>(number); }

TEST(CapturesTest, NothingSynchronisesDuringACapture) {
  Captures captures;
  captures.AwaitTurn();
  EXPECT_FALSE(captures.BeginSynchronizing()) << "one is about to begin";
  captures.Began(Name(1), nullptr);
  EXPECT_FALSE(captures.BeginSynchronizing());
  EXPECT_TRUE(captures.Any());
  captures.Ended(Name(1), nullptr);
  EXPECT_TRUE(captures.BeginSynchronizing());
  captures.EndSynchronizing();
  captures.AwaitTurn();
  captures.DidNotBegin();
  EXPECT_FALSE(captures.Any());
}

TEST(CapturesTest, SeveralCapturesAreAllWaitedFor) {
  Captures captures;
  for (const uintptr_t stream : {1, 2}) {
    captures.AwaitTurn();
    captures.Began(Name(stream), nullptr);
  }
  captures.Ended(Name(1), nullptr);
  captures.Ended(Name(1), nullptr);
  EXPECT_FALSE(captures.BeginSynchronizing());
  captures.Ended(Name(2), nullptr);
  EXPECT_TRUE(captures.BeginSynchronizing());
  captures.EndSynchronizing();
}

TEST(CapturesTest, ThreadsThatCaptureTheirOwnDefaultStreamAreSeveral) {
  Captures captures;
  for (int thread = 0; thread < 2; ++thread) {
    captures.AwaitTurn();
    captures.Began(CU_STREAM_PER_THREAD, nullptr);
  }
  captures.Ended(CU_STREAM_PER_THREAD, nullptr);
  EXPECT_FALSE(captures.BeginSynchronizing());
  captures.Ended(CU_STREAM_PER_THREAD, nullptr);
  EXPECT_TRUE(captures.BeginSynchronizing());
  captures.EndSynchronizing();
}

TEST(CapturesTest, AContextThatEndsTakesItsCapturesAlong) {
  const auto context = reinterpret_cast<CUcontext>(uintptr_t{7});
  const auto other = reinterpret_cast<CUcontext>(uintptr_t{8});
  Captures captures;
  for (const uintptr_t stream : {1, 2}) {
    captures.AwaitTurn();
    captures.Began(Name(stream), context);
  }
  captures.AwaitTurn();
  captures.Began(CU_STREAM_PER_THREAD, context);
  captures.AwaitTurn();
  captures.Began(CU_STREAM_PER_THREAD, other);
  captures.Ended(CU_STREAM_PER_THREAD, other);
  captures.ContextEnded(other);
  EXPECT_TRUE(captures.Any());
  captures.ContextEnded(context);
  EXPECT_FALSE(captures.Any());
  captures.AwaitTurn();
  captures.Began(Name(1), context);
  captures.ContextEnded(nullptr);  // none of them
  EXPECT_TRUE(captures.Any());
  captures.Ended(Name(1), context);
}

// Its name is not known: but its device is, and the program's other contexts.
TEST(CapturesTest, APrimaryContextThatEndsTakesItsCapturesAlong) {
  const auto context = reinterpret_cast<CUcontext>(uintptr_t{7});
  Captures captures;
  captures.AwaitTurn();
  captures.Began(Name(1), context, 0);
  captures.PrimaryEnded(1, {});
  EXPECT_TRUE(captures.Any()) << "another device's";
  captures.PrimaryEnded(0, {context});
  EXPECT_TRUE(captures.Any()) << "another context of the device";
  captures.PrimaryEnded(0, {});
  EXPECT_FALSE(captures.Any());
}

// The end of a context takes its turn as a capture that does not begin.
TEST(CapturesTest, WhoIsOutOfMemoryWaitsForTheEndsOfContexts) {
  Captures captures;
  std::atomic<bool> stop = false;
  std::thread ends([&] {
    while (!stop) {
      captures.AwaitTurn();
      captures.DidNotBegin();
    }
  });
  for (int n = 0; n < 2000; ++n) {
    const SynchronizingTurn turn(&captures, Soon(std::chrono::minutes(1)));
    EXPECT_TRUE(turn.granted());
  }
  stop = true;
  ends.join();
  captures.AwaitTurn();
  captures.Began(Name(1), nullptr);
  EXPECT_FALSE(captures.BeginSynchronizing(Captures::TimePoint::max()))
      << "not for a capture";
  captures.Ended(Name(1), nullptr);
}

// The driver may wait there for a lock that this thread has.
TEST(CapturesTest, AnEndThatTakesLongIsNotWaitedForForEver) {
  Captures captures;
  captures.AwaitTurn();
  EXPECT_FALSE(
      captures.BeginSynchronizing(Soon(std::chrono::milliseconds(20))));
  captures.DidNotBegin();
}

TEST(CapturesTest, ThreadsThatCaptureAndSynchroniseTakeTurns) {
  Captures captures;
  std::atomic<int> capturing = 0;
  std::atomic<int> synchronizing = 0;
  std::atomic<int> overlaps = 0;
  std::vector<std::thread> threads;
  for (uintptr_t i = 1; i <= 3; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 2000; ++n) {
        captures.AwaitTurn();
        ++capturing;
        if (synchronizing > 0) ++overlaps;
        captures.Began(Name(i), nullptr);
        --capturing;
        captures.Ended(Name(i), nullptr);
      }
    });
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        const SynchronizingTurn turn(&captures);
        if (!turn.granted()) continue;
        ++synchronizing;
        if (capturing > 0) ++overlaps;
        --synchronizing;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
}

}  // namespace
}  // namespace gmb::preload
