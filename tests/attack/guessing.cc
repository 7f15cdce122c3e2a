// Tokens and lease ids that are not this process's: guessed, and stolen.
#include <poll.h>

#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kGuessPatience = absl::Seconds(2);
// Below the bound of calls, so that every guess is looked at.
constexpr int kGuessPauseMs = 70;

// Whether the broker answers a stream that is opened with it.
bool Opens(const std::string& socket_dir, const std::string& token) {
  HandStream stream;
  if (!stream.Open(socket_dir, token)) return false;
  v1::ClientMessage ask;
  ask.mutable_get_quota();
  return stream.Ask(ask, kGuessPatience).has_value();
}

// Asks to release leases 1, 2, ... that are not its own.
void Release(Attack& attack, HandStream* stream, uint64_t first) {
  for (uint64_t lease = first; lease < first + 100; ++lease) {
    const auto answer = stream->Ask(ReleaseOf(lease), kGuessPatience);
    if (!answer.has_value()) return;
    attack.Count(answer->has_released() ? "released" : "no_such_lease");
  }
}

}  // namespace

absl::Status Guessing(Attack& attack) {
  const AttackOptions& options = attack.options();
  std::mt19937 random(std::random_device{}());
  Sessions sessions(&attack);
  HandStream own;
  uint64_t turn = 0;
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, kGuessPauseMs);
    if (!sessions.Ready()) continue;
    std::string guess = absl::HexStringToBytes(options.token);
    attack.Count("guesses");
    if (turn % 2 == 0 || guess.empty()) {
      guess.assign(16, '\0');
      for (char& byte : guess) byte = static_cast<char>(random());
      if (Opens(options.socket_dir, guess)) attack.Count("guessed");
    } else if (Opens(options.socket_dir, guess)) {
      attack.Count("stolen");
    }
    if (!own.is_open() && !own.Open(options.socket_dir, sessions.Token()))
      continue;
    Release(attack, &own, 1 + turn++ * 100);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
