// A client process of gate_process_test: enters and leaves until it is killed.
//
//   gate_client SEED
#include <sys/mman.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "client/gate/gate.h"
#include "client/gate/gate_scope.h"
#include "ipc/gate_page.h"
#include "tests/client/gate/gate_client_wire.h"

namespace gmb::internal {
namespace {

constexpr int kThreads = 3;

class PollingOwner final : public GateOwner {
 public:
  PollingOwner(ipc::GateCells* cells, SharedMemory* shared)
      : cells_(*cells), shared_(*shared) {}

  absl::Status Restore(
      std::chrono::steady_clock::time_point deadline) override {
    ++shared_.wanted;
    absl::Status status;
    for (;;) {
      const ipc::GateWord word = LookAtGate(cells_);
      if (!word.paused() && word.state() != ipc::GateState::kClosed) break;
      if (std::chrono::steady_clock::now() >= deadline) {
        status = absl::DeadlineExceededError("nobody answers");
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    --shared_.wanted;
    return status;
  }
  absl::Status Synchronize() override {
    std::this_thread::yield();
    return absl::OkStatus();
  }

 private:
  ipc::GateCells& cells_;
  SharedMemory& shared_;
};

void Work(Gate& gate, SharedMemory& shared, unsigned seed) {
  std::mt19937 random(seed);
  for (;;) {
    {
      const auto scope = random() % 4 == 0
                             ? GateScope::EnterCapture(gate, absl::Seconds(1))
                             : GateScope::Enter(gate, absl::Seconds(1));
      if (!scope.ok()) continue;
      if (shared.taken != 0) ++shared.intrusions;
      for (int i = 0; i < 16; ++i) {
        shared.cells[random() % shared.cells.size()] = random();
      }
      if (shared.taken != 0) ++shared.intrusions;
      ++shared.scopes;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  }
}

int Main(unsigned seed) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto page = ipc::GatePage::Map(kGateFd);
  void* const at = ::mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE,
                          MAP_SHARED, kSharedFd, 0);
  if (!page.ok() || at == MAP_FAILED) return 1;
  auto& shared = *static_cast<SharedMemory*>(at);
  auto& cells = page->cells();
  PollingOwner owner(&cells, &shared);
  Gate gate(*std::move(page), &owner,
            GateOptions{absl::ZeroDuration(), absl::Milliseconds(1)});
  if (!gate.TurnOn().ok()) return 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Work(gate, shared, seed + i); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace gmb::internal

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return gmb::internal::Main(
      static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)));
}
