#ifndef GMB_KEEPER_CLAIM_H_
#define GMB_KEEPER_CLAIM_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace gmb::keeper {

// A broker's process, as the kernel names it to the keeper.
struct Process {
  pid_t pid = 0;  // 0: in a pid namespace that the keeper does not see
  // ipc::ProcessNumber; none on Linux before 6.9.
  std::optional<uint64_t> number = std::nullopt;
};

// Whether a process that was seen first, and still lives, is this one. It keeps
// its number, and its pid; but pid 0 is that of many.
constexpr bool IsSame(const Process& living, const Process& other) {
  if (living.number.has_value() && other.number.has_value())
    return living.number == other.number;
  return living.pid > 0 && living.pid == other.pid;
}

inline std::string NameOf(const Process& process) {
  return process.pid > 0 ? "pid " + std::to_string(process.pid)
                         : "a process of another pid namespace";
}

// The broker that was served last.
struct Holder {
  Process process = {};
  bool connected = false;
  // Its pidfd was seen readable. A hang-up alone says nothing: a process that
  // is stopped, or has closed a socket, still has the journal mapped and may
  // write to it.
  bool dead = false;
};

// Whether a process that greets as a broker may be served now: it is the only
// one, or the one that was served and has hung up. Pure; the model of the
// hand-over uses it too (tests/keeper/handover_model.h).
constexpr bool MayServe(const std::optional<Holder>& holder,
                        const Process& process) {
  if (!holder.has_value() || holder->dead) return true;
  return !holder->connected && IsSame(holder->process, process);
}

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_CLAIM_H_
