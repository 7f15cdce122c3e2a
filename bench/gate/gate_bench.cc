// Measures the cost of a scope, beside an uncontended pthread mutex in the same
// run: the peer that everybody knows, and no kernel in it either.
//
//   gate_bench [--rounds N]
//
// Times are nanoseconds of one thread for one pair: median, 90th percentile and
// least of the rounds.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "client/gate/gate.h"
#include "client/gate/gate_scope.h"
#include "ipc/gate_page.h"

namespace gmb::internal {
namespace {

using Clock = std::chrono::steady_clock;
using Pair = std::function<void(int pairs)>;

constexpr int kPairs = 200'000;

class NoDevices final : public GateOwner {
 public:
  absl::Status Restore(Clock::time_point) override {
    return absl::UnavailableError("no broker");
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

double Nanoseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

// One round: all threads begin together; the mean of their times for a pair.
double Round(int threads, const Pair& pairs) {
  std::atomic<int> ready{0};
  std::atomic<double> total{0};
  std::vector<std::thread> running;
  running.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      pairs(1000);
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const Clock::time_point start = Clock::now();
      pairs(kPairs);
      total.fetch_add(Nanoseconds(Clock::now() - start) / kPairs);
    });
  }
  for (std::thread& thread : running) thread.join();
  return total / threads;
}

void Print(const char* what, int threads, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-42s %7d %9.1f %9.1f %9.1f\n", what, threads,
              times[times.size() / 2], times[times.size() * 9 / 10],
              times.front());
}

void EnterAndLeave(Gate& gate, int pairs) {
  for (int i = 0; i < pairs; ++i) {
    if (!gate.Enter(absl::ZeroDuration()).ok()) std::abort();
    gate.Leave();
  }
}

void LockAndUnlock(pthread_mutex_t* mutex, int pairs) {
  for (int i = 0; i < pairs; ++i) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
  }
}

// The first scope after the gate was parked, which wakes the parker.
std::vector<double> FirstScopes(Gate& gate, const ipc::GateCells& cells,
                                int rounds) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    while (!LookAtGate(cells).parked()) std::this_thread::yield();
    const Clock::time_point start = Clock::now();
    EnterAndLeave(gate, 1);
    times.push_back(Nanoseconds(Clock::now() - start));
  }
  return times;
}

struct GateAndPage {
  NoDevices owner;
  std::unique_ptr<ipc::GatePage> page;  // the broker's view
  std::unique_ptr<Gate> gate;
};

bool Make(absl::Duration park_after, GateAndPage* made) {
  auto fd = ipc::CreateGatePage();
  if (!fd.ok()) return false;
  auto broker = ipc::GatePage::Map(fd->get());
  auto client = ipc::GatePage::Map(fd->get());
  if (!broker.ok() || !client.ok()) return false;
  made->page = std::make_unique<ipc::GatePage>(*std::move(broker));
  made->gate = std::make_unique<Gate>(*std::move(client), &made->owner,
                                      GateOptions{.park_after = park_after});
  return made->gate->TurnOn().ok();
}

int Main(int rounds) {
  GateAndPage busy;
  GateAndPage parking;
  if (!Make(absl::Hours(1), &busy) || !Make(absl::ZeroDuration(), &parking)) {
    std::fprintf(stderr, "gate_bench: no gate page\n");
    return 1;
  }
  Gate& gate = *busy.gate;
  pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
  const struct {
    const char* what;
    Pair pairs;
  } rows[] = {
      {"gate enter + leave", [&](int n) { EnterAndLeave(gate, n); }},
      {"the same, nested",
       [&](int n) {
         const auto outer = GateScope::Enter(gate, absl::ZeroDuration());
         EnterAndLeave(gate, n);
       }},
      {"mutex lock + unlock, one for each thread",
       [](int n) {
         pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
         LockAndUnlock(&own, n);
       }},
      {"mutex lock + unlock, one for all",
       [&](int n) { LockAndUnlock(&shared, n); }},
  };
  constexpr int kThreadCounts[] = {1, 16};
  std::vector<double> times[std::size(rows)][std::size(kThreadCounts)];
  // In turn, so that what befalls the machine befalls all.
  for (int round = 0; round < rounds; ++round) {
    for (size_t t = 0; t < std::size(kThreadCounts); ++t) {
      for (size_t row = 0; row < std::size(rows); ++row) {
        times[row][t].push_back(Round(kThreadCounts[t], rows[row].pairs));
      }
    }
  }
  std::printf("%d rounds of %d pairs a thread, %u cores; ns a pair\n", rounds,
              kPairs, std::thread::hardware_concurrency());
  std::printf("%-42s %7s %9s %9s %9s\n", "", "threads", "median", "p90", "min");
  for (size_t t = 0; t < std::size(kThreadCounts); ++t) {
    for (size_t row = 0; row < std::size(rows); ++row) {
      Print(rows[row].what, kThreadCounts[t], times[row][t]);
    }
  }
  Print("first scope after parking, and leave", 1,
        FirstScopes(*parking.gate, parking.page->cells(), 10 * rounds));
  return 0;
}

}  // namespace
}  // namespace gmb::internal

int main(int argc, char** argv) {
  int rounds = 31;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0) {
    rounds = std::atoi(argv[2]);
  }
  if (rounds < 1 || (argc != 1 && argc != 3)) {
    std::fprintf(stderr, "usage: gate_bench [--rounds N]\n");
    return 2;
  }
  return gmb::internal::Main(rounds);
}
