#ifndef GMB_BROKER_DAEMON_WATCHDOG_H_
#define GMB_BROKER_DAEMON_WATCHDOG_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "ipc/service_manager.h"

namespace gmb::broker {

// The thread that tells the service manager that the broker is alive, after it
// has seen that it is: `look` is called four times in the time after which the
// manager gives up, with a fourth of it as patience. A broker that does not
// pass is not spoken for; the log says why, and the manager ends it.
class Watchdog {
 public:
  using Look = std::function<absl::Status(absl::Duration patience)>;

  // No thread where nobody watches; where the system gives none, what the
  // standard library throws (ThreadsOrError). `manager` must outlive it.
  Watchdog(const ipc::ServiceManager* manager, Look look);
  // Waits for a look that is going on.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The manager knows that the start is over: it hears of the life from now on.
  void Begin();

 private:
  void Run();
  // These are false where it is over.
  bool WaitForBegin();
  bool WaitForNext(absl::Duration pause);

  const ipc::ServiceManager* const manager_;
  const Look look_;
  const absl::Duration interval_;
  base::Mutex mu_;
  base::CondVar wake_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_WATCHDOG_H_
