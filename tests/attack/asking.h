#ifndef GMB_TESTS_ATTACK_ASKING_H_
#define GMB_TESTS_ATTACK_ASKING_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "gmb/v1/session.pb.h"
#include "tests/attack/attack.h"

namespace gmb::attack {

struct Asking {
  // Asked again and again, one after the other, on the stream of a session:
  // many times in a frame, which costs its sender next to nothing.
  std::vector<v1::ClientMessage> questions;
  // Each time under a new id: the broker does not know the answer yet.
  bool anew = false;
  // How many bytes of answers it takes (SETTINGS_INITIAL_WINDOW_SIZE).
  uint32_t answers_window = 0;
  // So often on one connection.
  uint64_t most = std::numeric_limits<uint64_t>::max();
};

// Has as many sessions as the options say connections, each of which asks on a
// connection of its own as fast as the broker takes it by HTTP/2's windows.
void KeepAsking(const Asking& asking, Attack& attack);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_ASKING_H_
