#ifndef GMB_TESTS_ATTACK_HALT_AT_H_
#define GMB_TESTS_ATTACK_HALT_AT_H_

#include <string>

#include "tests/attack/attack.h"

namespace gmb::attack {

// Stops this process for ever, or kills it, when `step` is the one where it has
// to. Says "at STEP" before.
void HaltAt(const AttackOptions& options, const std::string& step);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HALT_AT_H_
