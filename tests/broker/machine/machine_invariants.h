#ifndef GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_
#define GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_

#include <string>

#include "broker/machine/machine.h"
#include "broker/machine/state.h"
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
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_MACHINE_INVARIANTS_H_
