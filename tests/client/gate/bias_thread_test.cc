// The biased gate's threads: slots that are taken over, forks, and all at once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "client/gate/gate_scope.h"
#include "tests/client/gate/bias_fixture.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

TEST_P(BiasTest, ASlotGoesToAnotherThreadAndCountsOn) {
  BiasSlot* first = nullptr;
  std::thread([&] {
    Call();
    first = BiasSlots::Mine();
  }).join();
  const uint64_t count = first->count;
  EXPECT_GE(count, 1u);
  std::thread([&] {
    Call();
    EXPECT_EQ(BiasSlots::Mine(), first);
  }).join();
  EXPECT_EQ(first->count, count + 1);
}

// As by a cancellation inside of the driver: in whichever way it came in.
TEST_P(BiasTest, ACallEndsWithItsThread) {
  BiasSlot* slot = nullptr;
  const auto end_inside = [&] {
    std::thread([&] {
      slot = BiasSlots::Mine();
      Enter();
    }).join();
  };
  end_inside();
  EXPECT_EQ(slot->mark, BiasSlot::kOut);
  Park();
  const uint64_t slow = bias_->slow_calls().count;
  end_inside();
  EXPECT_EQ(slot->ordinary, 0u);
  EXPECT_EQ(bias_->slow_calls().count, slow + 1);
  EXPECT_EQ(word().scopes(), 1u);  // the standing one
  Park();
}

TEST_P(BiasTest, AForkedChildIsLetInAndLeavesThePageAlone) {
  Park();
  const GateWord before = word();
  const pid_t child = ::fork();
  if (child == 0) {
    Bias::Entry entry{};
    const bool in = bias_->Enter(*BiasSlots::Mine(), kWait, entry).ok();
    bias_->Leave(*BiasSlots::Mine(), entry);
    ::_exit(in && !entry.ordinary ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(word(), before);
  EXPECT_TRUE(bias_->closing());
}

// Callers, a user of scopes, the idler, and a broker that pauses and takes.
TEST_P(BiasTest, NothingIsTouchedWhileTheBrokerHasIt) {
  constexpr int kTakings = 30;
  std::atomic<bool> taken{false};
  std::atomic<bool> stop{false};
  owner_.SetAnswer(absl::OkStatus());
  const auto touch = [&] { EXPECT_FALSE(taken.load()); };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      BiasSlot& slot = *BiasSlots::Mine();
      for (int call = 0; !stop; ++call) {
        std::this_thread::yield();
        Bias::Entry entry{};
        // UNAVAILABLE: paused for longer than the gate asks this broker.
        if (!bias_->Enter(slot, kWait, entry).ok()) continue;
        touch();
        if (call % 7 == i) Call();
        touch();
        bias_->Leave(slot, entry);
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      std::this_thread::yield();
      const auto scope = GateScope::Enter(*gate_, kWait);
      if (scope.ok()) touch();
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      idler_->Step(std::chrono::steady_clock::now());
      std::this_thread::yield();
    }
  });
  int closed = 0;
  EXPECT_TRUE(Await([&] {
    const GateWord seen = word();
    if (!seen.paused()) {
      // Not before somebody was in: else it is parked as it was.
      if (seen.state() == GateState::kOpen) ipc::PauseGate(cells());
      return false;
    }
    if (!CloseGate(cells(), seen)) return false;
    taken = true;
    std::this_thread::yield();
    taken = false;
    EXPECT_TRUE(ReopenGate(cells(), word()));
    return ++closed == kTakings;
  })) << closed;
  ipc::WithdrawPause(cells());
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gmb::internal
