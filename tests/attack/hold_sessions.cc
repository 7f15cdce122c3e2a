// As many sessions as the broker gives, each kept for as long as it lasts.
#include <poll.h>

#include <memory>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {

absl::Status HoldSessions(Attack& attack) {
  const AttackOptions& options = attack.options();
  std::vector<std::unique_ptr<OwnSession>> sessions(
      static_cast<size_t>(options.connections));
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, 20);
    for (std::unique_ptr<OwnSession>& session : sessions) {
      if (session != nullptr && session->Lives()) continue;
      session = nullptr;
      absl::StatusOr<OwnSession> greeted =
          OwnSession::Greet(options.socket_dir);
      attack.Count(greeted.ok() ? "sessions" : "refused");
      if (!greeted.ok()) break;
      session = std::make_unique<OwnSession>(*std::move(greeted));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
