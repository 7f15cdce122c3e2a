#ifndef GMB_BROKER_MACHINE_SESSION_GATE_H_
#define GMB_BROKER_MACHINE_SESSION_GATE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "broker/machine/owned.h"
#include "broker/machine/owners.h"
#include "ipc/gate_page.h"
#include "ipc/gate_watch.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// A session's gate, the broker's side: what its word says, and what the broker
// has done to it (docs/gate.md). Guarded by the core's lock; no function makes
// a system call. Nothing that a client writes into the page can break it.
class SessionGate {
 public:
  // `cells`: the page that the client has mapped too.
  SessionGate(std::shared_ptr<ipc::GateCells> cells, quota::Instant now);

  // The program has turned its gate on. Until then nothing is taken.
  [[nodiscard]] bool on() const { return on_; }
  void SetOn(bool on, Key<Gates> /*key*/) { on_ = on; }

  [[nodiscard]] const std::shared_ptr<ipc::GateCells>& cells() const {
    return cells_;
  }
  // Whether scopes may be in, by the word alone: not a look.
  [[nodiscard]] static bool IsOpen(const ipc::GateCells& cells);
  // Looks at the word. kClosed while it is closed by us, whatever it says.
  // Everybody may look: that changes nothing but what was seen last.
  quota::Gate Look(quota::Instant now) const;
  // As of the last look. None while a scope is in.
  [[nodiscard]] std::optional<quota::Instant> idle_since() const;
  // As of the last look; see ipc::GateWatch.
  [[nodiscard]] std::optional<quota::Nanoseconds> usual_gap() const;
  [[nodiscard]] std::optional<quota::Nanoseconds> usual_use() const;
  // Grows whenever the memory may have been used; as of the last look.
  [[nodiscard]] uint64_t epoch() const { return seen_.epoch(); }
  // Whether the memory is as it was when the gate was closed, or parked, in
  // that epoch. Looks anew.
  [[nodiscard]] bool UnusedSince(uint64_t epoch) const;

  // False: it was not parked any more.
  [[nodiscard]] bool Close(Key<Gates> key);
  [[nodiscard]] bool closed() const { return closed_.has_value(); }
  // Lets the client's scopes in again. False: the client has written over the
  // word; it counts as open from now on.
  [[nodiscard]] bool Reopen(Key<Gates> key);

  // As another broker has left it, whose session it was: a word that says
  // CLOSED was written by it, and there is no pause.
  void Adopt(bool on, Key<Gates> key);

  void Pause(quota::Instant until, Key<Gates> key);
  void Withdraw(Key<Gates> key);
  // When the pause ends by itself; none: there is no pause.
  [[nodiscard]] std::optional<quota::Instant> pausing_until() const {
    return pausing_until_;
  }
  // So many pauses in a row were withdrawn since one of its group had parked and
  // another one had not.
  [[nodiscard]] uint32_t held_up() const { return held_up_; }
  void SetHeldUp(uint32_t pauses, Key<Gates> /*key*/) { held_up_ = pauses; }
  // A pause has failed, and the next one would: it is not paused before that.
  // Memory that it parks by itself may be taken.
  [[nodiscard]] quota::Instant not_paused_before() const {
    return not_paused_before_;
  }
  void SparePauses(quota::Instant until, Key<Gates> /*key*/) {
    not_paused_before_ = until;
  }

 private:
  std::shared_ptr<ipc::GateCells> cells_;
  mutable ipc::GateWatch watch_;
  mutable ipc::GateWord seen_;
  bool on_ = false;
  std::optional<ipc::GateWord> closed_;  // the word as we left it
  std::optional<quota::Instant> pausing_until_;
  uint32_t held_up_ = 0;
  quota::Instant not_paused_before_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_GATE_H_
