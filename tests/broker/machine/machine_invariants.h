#ifndef GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_
#define GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_

#include <cstdint>
#include <string>

#include "broker/machine/machine.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// Checks what must hold after every turn. Empty, or what does not.
std::string WhatIsWrong(const State& state, quota::Instant now);
// Checks what must hold when every session and every lease has ended.
std::string WhatIsLeft(const State& state);

// Reaches into the machine, for tests alone.
class MachineProbe {
 public:
  // Everybody who waits asks again. After a turn that forgot nobody, nothing
  // follows from that.
  static void AskAgain(Machine* machine, Turn& turn);
  // The session asks again for what it has just been refused, and does not wait
  // for it. Empty if that is refused as well, or nothing follows; or what else
  // becomes of it.
  static std::string AskOnceMore(Machine* machine, uint64_t session,
                                 v1::ClientMessage message, Turn& turn);
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_
