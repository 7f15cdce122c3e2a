#ifndef GMB_BENCH_BROKER_RATE_H_
#define GMB_BENCH_BROKER_RATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace gmb::bench {

// How fast others count, over `seconds` that begin half a second from now.
[[nodiscard]] inline double RateOf(const std::atomic<uint64_t>& count,
                                   double seconds) {
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const uint64_t before = count;
  const Clock::time_point start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double took =
      std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(count - before) / took;
}

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_RATE_H_
