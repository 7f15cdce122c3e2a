#ifndef GMB_BENCH_ATTACK_ATTACK_ROUND_H_
#define GMB_BENCH_ATTACK_ATTACK_ROUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/attack/operator.h"
#include "bench/attack/others.h"

namespace gmb::bench {

inline constexpr char kMallory[] = "mallory";  // attacks

// Words of an attack that only a round knows: the directory of another tenant,
// the pid of this process, in which the honest session is, and a file that
// nobody may touch.
inline constexpr char kDirOfAnother[] = "{other}";
inline constexpr char kThisProcess[] = "{pid}";
inline constexpr char kVictim[] = "{victim}";

// A broker's memory, fds and threads.
struct Held {
  int64_t anonymous_kib = 0;
  int64_t fds = 0;
  int64_t threads = 0;
};

[[nodiscard]] Held HeldBy(pid_t broker);

// One attack: its words for `attacker`, and in which directories.
struct AttackSpec {
  std::vector<std::string> words;
  bool shared_too = false;    // a second process in the shared directory
  uint64_t fill = 0;          // bytes that it fills at once; its control too
  int processes = 1;          // of each attacker, with the control's burners
  Work work = Work::kNone;    // an operator's, also beside the control
  bool by_operators = false;  // in their directory, not in a tenant's
};

struct Round {
  Seen seen;
  double cores = 0;  // of processor time that each attacker took
  double broker_cores = 0;
  Held most;         // while it went on
  std::string told;  // the first process's own counts
};

struct RoundSetup {
  std::string attacker;  // the program
  std::string socket_dir;
  std::string log_path;
  pid_t broker = -1;
  absl::Duration duration;
};

// Others are served while the processes go on. An error says that they could
// not be started, or did not go on to their end.
[[nodiscard]] absl::StatusOr<Round> RunAttack(const RoundSetup& setup,
                                              const AttackSpec& attack);
// As many processes as the attack has take `cores` for each attacker.
[[nodiscard]] absl::StatusOr<Round> RunControl(const RoundSetup& setup,
                                               const AttackSpec& attack,
                                               double cores);

}  // namespace gmb::bench

#endif  // GMB_BENCH_ATTACK_ATTACK_ROUND_H_
