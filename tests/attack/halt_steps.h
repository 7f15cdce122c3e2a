#ifndef GMB_TESTS_ATTACK_HALT_STEPS_H_
#define GMB_TESTS_ATTACK_HALT_STEPS_H_

#include <array>

namespace gmb::attack {

// Where a client of `halts` can halt, in its order, and one of `halts_in_moves`.
inline constexpr std::array<const char*, 10> kStepsOfALife = {
    "connected",    "challenged", "hello_sent",   "welcomed", "stream_opened",
    "acquire_sent", "granted",    "acknowledged", "mapped",   "release_sent"};
inline constexpr std::array<const char*, 8> kStepsOfMoves = {
    "gate_on",      "parked",       "evict_received", "unmapped_sent",
    "restore_sent", "map_received", "slabs_taken",    "mapped_again"};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HALT_STEPS_H_
