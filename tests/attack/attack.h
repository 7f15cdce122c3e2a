#ifndef GMB_TESTS_ATTACK_ATTACK_H_
#define GMB_TESTS_ATTACK_ATTACK_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gmb::attack {

struct AttackOptions {
  std::string socket_dir;  // of a tenant, or the shared one
  double seconds = 3;      // SIGTERM ends it earlier
  int connections = 8;     // kept open at once
  bool greet = false;      // with a session of this process
  bool keep = false;       // fast_connects: keeps what it has connected
  std::string socket = "handle.sock";  // fast_connects: or gmb.sock
  int rate = 0;     // fast_connects: a second; 0: as fast as it goes
  int fds = 1;      // linger: in a packet
  double duty = 1;  // control_burner: the share of one core
};

// One attack that is going on: when it ends, and what it has done so far. Says
// "attacking" at its start, and a line of its counts every second:
//
//   second 2: connections=12 refused=3
//
// Of one thread.
class Attack {
 public:
  explicit Attack(const AttackOptions& options);

  [[nodiscard]] const AttackOptions& options() const { return options_; }
  // False when it has to end. Call it often.
  [[nodiscard]] bool GoesOn();
  void Count(const std::string& what, uint64_t by = 1) { counts_[what] += by; }

 private:
  void Report(const std::string& heading) const;

  const AttackOptions options_;
  absl::Time start_ = absl::InfinitePast();
  int64_t seconds_reported_ = 0;
  std::map<std::string, uint64_t> counts_;
};

// The attacks. Each goes on until Attack::GoesOn says no; an error says that it
// could not be made at all.
absl::Status LingerFdHandle(Attack& attack);
absl::Status LingerFdGrpc(Attack& attack);
absl::Status ContinuationFlood(Attack& attack);
absl::Status EndlessField(Attack& attack);
absl::Status EmptyContinuations(Attack& attack);
absl::Status CheapFrames(Attack& attack);
absl::Status UnknownTokenCalls(Attack& attack);
absl::Status RapidReset(Attack& attack);
absl::Status PingFlood(Attack& attack);
absl::Status SettingsFlood(Attack& attack);
absl::Status FastConnects(Attack& attack);
// No attack: takes processor time as one does, for comparison.
absl::Status ControlBurner(Attack& attack);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_ATTACK_H_
