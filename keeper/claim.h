#ifndef GMB_KEEPER_CLAIM_H_
#define GMB_KEEPER_CLAIM_H_

#include <sys/types.h>

#include <optional>

namespace gmb::keeper {

// The broker that was served last.
struct Holder {
  pid_t pid = 0;  // 0: in a pid namespace that the keeper does not see
  bool connected = false;
  // Its pidfd was seen readable. A hang-up alone says nothing: a process that
  // is stopped, or has closed a socket, still has the journal mapped and may
  // write to it.
  bool dead = false;
};

// Whether a process that greets as a broker may be served now: it is the only
// one, or the one that was served and has hung up. A living process keeps its
// pid, so an equal pid is the same process. Pure; the model of the hand-over
// uses it too (tests/keeper/handover_model.h).
constexpr bool MayServe(const std::optional<Holder>& holder, pid_t pid) {
  if (!holder.has_value() || holder->dead) return true;
  return !holder->connected && pid > 0 && holder->pid == pid;
}

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_CLAIM_H_
