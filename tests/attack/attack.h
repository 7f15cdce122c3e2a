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
  int uid = 0;             // whose process it is; 0: as it was started
  bool greet = false;      // with a session of this process
  int connections = 8;     // kept open at once

  // For some attacks alone.
  std::string socket = "handle.sock";   // or gmb.sock
  bool keep = false;                    // does not give back, or close
  int rate = 0;                         // a second; 0: as fast as it goes
  int fds = 1;                          // in a packet
  uint64_t bytes = uint64_t{64} << 20;  // to lease
  int pid = 1;                          // in whose name
  std::string token;                    // stolen, in hexadecimals
  std::string other_dir;                // of another tenant
  std::string path;                     // what is not to be touched
  std::string step;                     // where it stops
  std::string then = "stop";            // or kill
  double duty = 1;                      // the share of one core
  uint64_t fill = 0;                    // bytes of its own, at once
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
absl::Status BorrowedIdentity(Attack& attack);
absl::Status CheapFrames(Attack& attack);
absl::Status ContinuationFlood(Attack& attack);
absl::Status DataPings(Attack& attack);
absl::Status EmptyContinuations(Attack& attack);
absl::Status EndlessField(Attack& attack);
absl::Status FastConnects(Attack& attack);
absl::Status FuseFds(Attack& attack);
absl::Status Guessing(Attack& attack);
absl::Status HaltingCrowd(Attack& attack);
absl::Status HaltingCrowdInMoves(Attack& attack);
absl::Status Halts(Attack& attack);
absl::Status HaltsInMoves(Attack& attack);
absl::Status HoldSessions(Attack& attack);
absl::Status HopelessRequests(Attack& attack);
absl::Status InflightCycles(Attack& attack);
absl::Status LentSockets(Attack& attack);
absl::Status LingerFdGrpc(Attack& attack);
absl::Status LingerFdHandle(Attack& attack);
absl::Status LinkAmbush(Attack& attack);
absl::Status LinkRaces(Attack& attack);
absl::Status Notices(Attack& attack);
absl::Status OddFds(Attack& attack);
absl::Status OpenCalls(Attack& attack);
absl::Status PassedOn(Attack& attack);
absl::Status PingFlood(Attack& attack);
absl::Status PunchSlabs(Attack& attack);
absl::Status QuotaQuestions(Attack& attack);
absl::Status RapidReset(Attack& attack);
absl::Status Replays(Attack& attack);
absl::Status SettingsFlood(Attack& attack);
absl::Status SingleBytes(Attack& attack);
absl::Status TamperSlabs(Attack& attack);
absl::Status UnknownTokenCalls(Attack& attack);
absl::Status UnreadAnswers(Attack& attack);
absl::Status UnreadCalls(Attack& attack);
absl::Status UnreadSlabs(Attack& attack);
absl::Status WaitingRequests(Attack& attack);
// No attack: takes processor time as one does, for comparison.
absl::Status ControlBurner(Attack& attack);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_ATTACK_H_
