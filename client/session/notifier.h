#ifndef GMB_CLIENT_SESSION_NOTIFIER_H_
#define GMB_CLIENT_SESSION_NOTIFIER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "gmb/options.h"

namespace gmb::internal {

// Calls the application's handlers on a thread of their own, so that they may
// block and call back into the library. Exceptions that they throw are dropped.
//
// Keeps the newest notice of each device only: a handler that never returns
// costs no memory. Thread-safe.
class Notifier {
 public:
  // Starts a thread if there is any handler.
  Notifier(BudgetHandler on_budget_changed, DrainHandler on_draining);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier() { Stop(); }

  // Afterwards no handler is called or running, unless this runs inside one.
  void Stop();

  void BudgetChanged(QuotaView quota);
  void Draining(absl::Duration remaining);

 private:
  // Outlives the Notifier when that is destroyed inside a handler.
  struct State {
    State(BudgetHandler budget_handler, DrainHandler drain_handler)
        : on_budget_changed(std::move(budget_handler)),
          on_draining(std::move(drain_handler)) {}

    const BudgetHandler on_budget_changed;
    const DrainHandler on_draining;
    base::Mutex mu;
    base::CondVar changed;
    bool stopping ABSL_GUARDED_BY(mu) = false;
    std::map<std::string, QuotaView> budgets ABSL_GUARDED_BY(mu);
    std::optional<absl::Duration> draining ABSL_GUARDED_BY(mu);
  };
  // A broker that makes up devices fills no memory.
  static constexpr size_t kMostDevices = 256;
  static void Run(State& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_NOTIFIER_H_
