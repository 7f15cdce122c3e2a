#ifndef GMB_BROKER_METRICS_STATE_DISK_H_
#define GMB_BROKER_METRICS_STATE_DISK_H_

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "broker/core/clock.h"

namespace gmb::broker::metrics {

// Whether the state directory takes operators' changes, as last found. A disk
// can take its time, and a caller that asks does not wait for it: a thread of
// its own does. It looks when it is asked, once in kEvery at most. Thread-safe.
class StateDisk {
 public:
  static constexpr std::chrono::seconds kEvery{60};

  struct Reading {
    bool ok = false;
    absl::Time at;
  };
  // `clock` outlives it.
  StateDisk(std::function<absl::Status()> probe, const Clock* clock);
  ~StateDisk();
  StateDisk(const StateDisk&) = delete;
  StateDisk& operator=(const StateDisk&) = delete;

  // Empty until the first look is over.
  [[nodiscard]] std::optional<Reading> Latest();

 private:
  void Run();

  const std::function<absl::Status()> probe_;
  const Clock* const clock_;
  base::Mutex mu_;
  base::CondVar wake_;
  std::optional<Reading> latest_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point next_ ABSL_GUARDED_BY(mu_){};
  bool asked_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_STATE_DISK_H_
