// One process against a broker that takes whatever it may: threads with nested
// scopes and captures, a GPU that works on after they left, pauses, copies made
// ahead, and brokers that forget everything. Meant for ThreadSanitizer too.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "client/gate/gate.h"
#include "client/gate/gate_scope.h"
#include "ipc/gate_control.h"
#include "tests/client/gate/gate_fixture.h"

namespace gmb::internal {
namespace {

constexpr int kThreads = 4;
constexpr int kScopes = 1500;  // of each thread
constexpr size_t kCells = 32;

// The leased memory. Relaxed atomics: whether somebody reads while another
// writes is what the test finds out.
class Memory {
 public:
  using Contents = std::array<uint32_t, kCells>;

  void Write(unsigned value) {
    EXPECT_FALSE(taken_.load()) << "written while the broker had it";
    for (size_t i = 0; i < 4; ++i) {
      cells_[(value + i) % kCells].fetch_add(value, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] Contents Read() const {
    Contents contents;
    for (size_t i = 0; i < kCells; ++i) {
      contents[i] = cells_[i].load(std::memory_order_relaxed);
    }
    return contents;
  }
  void SetTaken(bool taken) { taken_ = taken; }

 private:
  std::array<std::atomic<uint32_t>, kCells> cells_{};
  std::atomic<bool> taken_{false};
};

// Carries out what was submitted, in order, some time later.
class Gpu {
 public:
  explicit Gpu(Memory* memory) : memory_(*memory), thread_([this] { Run(); }) {}
  ~Gpu() {
    {
      base::MutexLock lock(&mu_);
      stop_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void Submit(unsigned value) {
    base::MutexLock lock(&mu_);
    work_.push_back(value);
    ++submitted_;
    changed_.NotifyAll();
  }
  // Waits for work that was submitted before the call, like cuCtxSynchronize.
  void Synchronize() {
    base::MutexLock lock(&mu_);
    const uint64_t until = submitted_;
    while (done_ < until) changed_.Wait(&mu_);
  }

 private:
  void Run() {
    mu_.Lock();
    for (;;) {
      while (work_.empty() && !stop_) changed_.Wait(&mu_);
      if (work_.empty()) break;
      const unsigned value = work_.front();
      work_.pop_front();
      mu_.Unlock();
      // Longer than a scope's patience, now and then.
      if (value % 64 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      memory_.Write(value);
      mu_.Lock();
      ++done_;
      changed_.NotifyAll();
    }
    mu_.Unlock();
  }

  Memory& memory_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::deque<unsigned> work_ ABSL_GUARDED_BY(mu_);
  uint64_t submitted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class StressedOwner final : public GateOwner {
 public:
  explicit StressedOwner(Gpu* gpu, ipc::GateCells* cells)
      : gpu_(*gpu), cells_(*cells) {}

  absl::Status Restore(
      std::chrono::steady_clock::time_point deadline) override {
    base::MutexLock lock(&mu_);
    ++waiting_;
    const uint64_t asked = answers_;
    while (asked == answers_) {
      if (!changed_.WaitUntil(&mu_, deadline)) break;
    }
    --waiting_;
    return asked == answers_ ? absl::DeadlineExceededError("stress")
                             : absl::OkStatus();
  }
  absl::Status Synchronize() override {
    synchronizing_ = true;
    EXPECT_EQ(captures_, 0) << "a capture was in before";
    gpu_.Synchronize();
    EXPECT_EQ(captures_, 0) << "a capture came in meanwhile";
    synchronizing_ = false;
    return ++calls_ % 16 == 0 ? absl::InternalError("now and then")
                              : absl::OkStatus();
  }

  void Capture() {
    ++captures_;
    EXPECT_FALSE(synchronizing_) << "captured during a synchronisation";
    std::this_thread::yield();
    --captures_;
  }
  // To all who wait, if they can be let in.
  void Answer() {
    const ipc::GateWord word = LookAtGate(cells_);
    if (word.paused() || word.state() == ipc::GateState::kClosed) return;
    base::MutexLock lock(&mu_);
    ++answers_;
    changed_.NotifyAll();
  }
  bool wanted() {
    base::MutexLock lock(&mu_);
    return waiting_ > 0;
  }

 private:
  Gpu& gpu_;
  ipc::GateCells& cells_;
  std::atomic<bool> synchronizing_{false};
  std::atomic<int> captures_{0};
  int calls_ = 0;  // on the parker's thread
  base::Mutex mu_;
  base::CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t answers_ ABSL_GUARDED_BY(mu_) = 0;
};

// Takes the memory whenever the word allows it.
class StressBroker {
 public:
  StressBroker(ipc::GateCells* cells, Memory* memory, StressedOwner* owner,
               unsigned seed)
      : cells_(*cells), memory_(*memory), owner_(*owner), random_(seed) {}

  void Step() {
    switch (random_() % 8) {
      case 0:
      case 1:
        Pause();
        break;
      case 2:
      case 3:
        CopyAhead();
        break;
      case 4:  // dies; the next one knows the page alone
        copied_ = false;
        break;
      default:
        Take();
    }
    ipc::WithdrawPause(cells_);
    owner_.Answer();
    std::this_thread::yield();
  }
  // Lets everybody in from now on.
  void End() {
    ipc::WithdrawPause(cells_);
    owner_.Answer();
  }

  int taken = 0;
  int copies = 0;  // made ahead and used

 private:
  // Until the gate is parked, or for a grace.
  void Pause() {
    ipc::PauseGate(cells_);
    for (unsigned i = random_() % 5000; i > 0; --i) {
      if (LookAtGate(cells_).parked()) break;
      std::this_thread::yield();
    }
    if (random_() % 4 == 0) return;
    CopyAhead();
    Take();
  }

  void CopyAhead() {
    const ipc::GateWord word = LookAtGate(cells_);
    if (!word.parked()) return;
    copy_ = memory_.Read();
    epoch_ = word.epoch();
    copied_ = CopyHolds(cells_, epoch_);
  }

  void Take() {
    const ipc::GateWord seen = LookAtGate(cells_);
    if (!CloseGate(cells_, seen)) return;
    const ipc::GateWord closed = LookAtGate(cells_);
    ++taken;
    memory_.SetTaken(true);
    const Memory::Contents first = memory_.Read();
    if (copied_ && CopyIsTrue(closed, epoch_)) {
      ++copies;
      EXPECT_EQ(copy_, first) << "the copy made ahead is not true";
    }
    for (unsigned i = random_() % 20; i > 0 && !owner_.wanted(); --i) {
      std::this_thread::yield();
    }
    EXPECT_EQ(memory_.Read(), first) << "changed while it was taken";
    memory_.SetTaken(false);
    EXPECT_TRUE(ReopenGate(cells_, closed));
  }

  ipc::GateCells& cells_;
  Memory& memory_;
  StressedOwner& owner_;
  std::mt19937 random_;
  bool copied_ = false;
  uint64_t epoch_ = 0;
  Memory::Contents copy_{};
};

void Work(Gate& gate, StressedOwner& owner, Memory& memory, Gpu& gpu,
          unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < kScopes; ++i) {
    // A pause between requests, of which the gate makes use.
    if (random() % 8 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    }
    const bool capture = random() % 4 == 0;
    const auto scope = capture ? GateScope::EnterCapture(gate, absl::Minutes(1))
                               : GateScope::Enter(gate, absl::Minutes(1));
    // UNAVAILABLE: taken away again each time, which this broker may do.
    if (!scope.ok()) {
      EXPECT_EQ(scope.status().code(), absl::StatusCode::kUnavailable)
          << scope.status();
      continue;
    }
    if (capture) owner.Capture();
    memory.Write(random());
    if (random() % 2 == 0) gpu.Submit(random());
    if (random() % 4 == 0) {
      const auto inner = random() % 2 == 0
                             ? GateScope::Enter(gate, absl::ZeroDuration())
                             : GateScope::EnterCapture(gate, absl::Minutes(1));
      EXPECT_TRUE(inner.ok()) << inner.status();
      memory.Write(random());
    }
  }
}

class GateStress : public ::testing::TestWithParam<unsigned> {};

TEST_P(GateStress, NothingIsInUseWhileTheBrokerHasIt) {
  std::printf("seed %u\n", GetParam());
  auto fd = ipc::CreateGatePage();
  ASSERT_TRUE(fd.ok());
  auto broker_page = ipc::GatePage::Map(fd->get());
  auto page = ipc::GatePage::Map(fd->get());
  ASSERT_TRUE(broker_page.ok() && page.ok());
  ipc::GateCells& cells = broker_page->cells();
  Memory memory;
  Gpu gpu(&memory);
  StressedOwner owner(&gpu, &cells);
  Gate gate(*std::move(page), &owner,
            GateOptions{absl::ZeroDuration(), absl::Milliseconds(1)});
  ASSERT_TRUE(gate.TurnOn().ok());

  std::atomic<int> working{kThreads};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Work(gate, owner, memory, gpu, GetParam() * 1000 + i);
      --working;
    });
  }
  StressBroker broker(&cells, &memory, &owner, GetParam());
  while (working > 0) broker.Step();
  for (std::thread& thread : threads) thread.join();
  broker.End();
  EXPECT_TRUE(Await([&] { return LookAtGate(cells).parked(); }));
  std::printf("taken %d times, %d of them with a true copy; epoch %llu\n",
              broker.taken, broker.copies,
              static_cast<unsigned long long>(LookAtGate(cells).epoch()));
  EXPECT_GT(broker.taken, 10);
  EXPECT_GT(broker.copies, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GateStress, ::testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace gmb::internal
