#ifndef GMB_BROKER_CORE_TICKER_H_
#define GMB_BROKER_CORE_TICKER_H_

#include <functional>
#include <thread>

#include "base/mutex.h"
#include "quota/units.h"

namespace gmb::broker {

// The thread that tells the core that time has passed: calls `tick` when it is
// due, which says when it is due next; Wake() makes it ask again at once.
// Instants are those of SystemClock (the steady clock).
class Ticker {
 public:
  explicit Ticker(std::function<quota::Instant()> tick);
  ~Ticker() { Stop(); }
  void Wake();
  // Ends the thread; Wake may still be called, without effect.
  void Stop();

 private:
  void Run();

  const std::function<quota::Instant()> tick_;
  base::Mutex mu_;
  base::CondVar wake_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_TICKER_H_
