#ifndef GMB_IPC_SERVICE_MANAGER_H_
#define GMB_IPC_SERVICE_MANAGER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gmb::ipc {

// The service manager that started this process and wants to hear from it:
// systemd, for units of Type=notify. It listens on a datagram socket, and words
// are those of sd_notify(3). Without one all of this does nothing.
class ServiceManager {
 public:
  // NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of the environment.
  static ServiceManager FromEnvironment();

  [[nodiscard]] bool present() const { return !socket_.empty(); }

  // Lines as "READY=1". Waits for room at the socket, for so long at most.
  // [Thread-safe]
  [[nodiscard]] absl::Status Say(
      absl::string_view lines, absl::Duration longest = absl::Seconds(2)) const;

  // A service that does not say WATCHDOG=1 for so long is ended. Zero: nobody
  // watches.
  [[nodiscard]] absl::Duration watchdog() const { return watchdog_; }

 private:
  std::string socket_;  // "": there is none
  absl::Duration watchdog_ = absl::ZeroDuration();
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_SERVICE_MANAGER_H_
