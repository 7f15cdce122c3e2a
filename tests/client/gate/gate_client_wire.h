#ifndef GMB_TESTS_CLIENT_GATE_GATE_CLIENT_WIRE_H_
#define GMB_TESTS_CLIENT_GATE_GATE_CLIENT_WIRE_H_

#include <array>
#include <atomic>
#include <cstdint>

namespace gmb::internal {

// Where the client process of the test finds what it is given.
inline constexpr int kGateFd = 3;
inline constexpr int kSharedFd = 4;

// Shared by both beside the gate: the leased memory, and what they tell each
// other about it.
struct SharedMemory {
  std::atomic<uint64_t> scopes;      // that came in
  std::atomic<uint32_t> taken;       // the broker has the memory
  std::atomic<uint32_t> intrusions;  // scopes that were in nevertheless
  std::atomic<uint32_t> wanted;      // threads that wait for the memory
  std::array<std::atomic<uint32_t>, 64> cells;
};

}  // namespace gmb::internal

#endif  // GMB_TESTS_CLIENT_GATE_GATE_CLIENT_WIRE_H_
