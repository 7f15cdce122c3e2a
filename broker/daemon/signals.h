#ifndef GMB_BROKER_DAEMON_SIGNALS_H_
#define GMB_BROKER_DAEMON_SIGNALS_H_

#include <csignal>
#include <functional>
#include <string>

#include "absl/time/time.h"

namespace gmb::broker {

// `gmb drain`'s: a drain whatever on_stop says.
inline constexpr int kDrainSignal = SIGUSR1;
// `gmb upgrade`'s: all is left to the next broker, whatever on_stop says.
inline constexpr int kDetachSignal = SIGUSR2;

// First of all: they are obeyed once the broker serves. SIGTERM and SIGINT stop
// a start that hangs.
void BlockForLater();

// A signal that stops a broker, and who sent it: "uid 0, pid 4711 (gmb)".
struct StopSignal {
  int number = 0;
  std::string sender;
};

// The signals that a broker obeys, taken by the main thread alone: those that
// stop it, and SIGHUP. (A lost terminal is no reason to stop: the file is read
// again, and nothing has changed in it.) Made before the first thread starts, so
// that all of them inherit the mask.
class Signals {
 public:
  Signals();

  // Returns at one that stops it.
  StopSignal Wait(const std::function<void()>& reload);
  // For SIGTERM or SIGINT. False when none came in time.
  bool WaitFor(absl::Duration duration);

 private:
  sigset_t stop_{};
  sigset_t all_{};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_SIGNALS_H_
