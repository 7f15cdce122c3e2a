#ifndef GMB_CLIENT_HEAP_TRIM_WATCH_H_
#define GMB_CLIENT_HEAP_TRIM_WATCH_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"

namespace gmb::internal {

// Passes on how much a heap could give back, on a thread of its own and not
// more often than every kPause: a heap that frees and allocates its last block
// in turn changes it a million times a second. Thread-safe.
class TrimWatch {
 public:
  // `rest` is called once a second while there are changes, and a second after
  // the last one; null: it is not.
  explicit TrimWatch(std::function<void(uint64_t bytes)> tell,
                     std::function<void()> rest = nullptr);
  TrimWatch(const TrimWatch&) = delete;
  TrimWatch& operator=(const TrimWatch&) = delete;
  // Does not tell what it has not told yet.
  ~TrimWatch();

  // Costs a store, and rarely a wake-up.
  void Changed(uint64_t bytes) {
    bytes_.store(bytes, std::memory_order_relaxed);
    if (!changed_.exchange(true, std::memory_order_acq_rel)) Wake();
  }
  // Tells it again, also if it is the same.
  void Repeat();

 private:
  static constexpr std::chrono::milliseconds kPause{50};
  static constexpr std::chrono::seconds kRest{1};

  void Wake();
  void Run();
  // Until there is something to do; false: to stop.
  bool Sleep(std::optional<std::chrono::steady_clock::time_point> until);

  const std::function<void(uint64_t bytes)> tell_;
  const std::function<void()> rest_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<bool> changed_ = false;
  base::Mutex mu_;
  base::CondVar wake_;
  bool repeat_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_TRIM_WATCH_H_
