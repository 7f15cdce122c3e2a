// Turns bytes into a run of the machine: each few bytes are one event of a
// client, a device, an operator or the clock. After every turn the invariants
// are checked. Random bytes make a property test; a fuzzer's bytes make a fuzz
// test; recorded sums of what was said and done keep a rewrite honest.
#ifndef GMB_TESTS_BROKER_MACHINE_MACHINE_INTERPRETER_H_
#define GMB_TESTS_BROKER_MACHINE_MACHINE_INTERPRETER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace gmb::broker {

struct MachineRun {
  // Empty, or what went wrong after the last events.
  std::string problem;
  std::vector<std::string> last_lines;
  uint64_t trace_sum = 0;
  uint64_t steps = 0;
  std::map<std::string, uint64_t> events_of_kind;
  // Counts what happened, so that a run in which nothing did is noticed.
  uint64_t granted = 0;
  uint64_t attached = 0;
  uint64_t evicted = 0;
  uint64_t restored = 0;
  uint64_t killed = 0;
  uint64_t restarts = 0;
  uint64_t adopted = 0;  // leases
  uint64_t read = 0;     // slabs whose contents were as they should be
};

// `seed` chooses the world: pools, sizes, options. With `restarts`, the broker
// dies in one of so many turns, 0: in none, and another takes over.
MachineRun InterpretMachine(uint64_t seed, absl::Span<const uint8_t> program,
                            uint64_t restarts = 0);

// So many events' worth of bytes of that seed.
std::vector<uint8_t> ProgramOf(uint64_t seed, size_t bytes);

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_MACHINE_INTERPRETER_H_
