// Turns bytes into a run of the engine: each few bytes are one event. After
// every event the invariants are checked and the effects are compared with the
// reference model. Random bytes make a property test; a fuzzer's bytes make a
// fuzz test.
#ifndef GMB_TESTS_QUOTA_INTERPRETER_H_
#define GMB_TESTS_QUOTA_INTERPRETER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/types/span.h"
#include "quota/reason.h"

namespace gmb::quota {

struct InterpreterResult {
  // Empty, or what went wrong with the last events before it.
  std::string problem;
  uint64_t events = 0;
  uint64_t granted = 0;
  uint64_t granted_after_waiting = 0;
  uint64_t granted_softened = 0;  // with a Softened
  std::map<Reason, uint64_t> denied;
  uint64_t pending = 0;
  uint64_t restored = 0;
  uint64_t restored_after_waiting = 0;
  uint64_t restored_nothing = 0;
  uint64_t restored_in_part = 0;
  uint64_t sent_again = 0;  // Restores with the id of a request that waits
  uint64_t denied_pausing = 0;
  uint64_t denied_claimed = 0;
};

InterpreterResult Interpret(absl::Span<const uint8_t> program);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_INTERPRETER_H_
