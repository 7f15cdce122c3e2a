// `gmbd --check`: the keeper, without becoming its broker.
#include "broker/daemon/check_keeper.h"

#include <cinttypes>
#include <cstdio>

#include "base/status_macros.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::broker {
namespace {

// One that was started just before.
constexpr absl::Duration kListens = absl::Seconds(2);

absl::StatusOr<keeper::KeeperStatus> StatusOf(const std::string& socket) {
  GMB_ASSIGN_OR_RETURN(
      keeper::KeeperLink link,
      keeper::KeeperLink::Connect({.socket = socket,
                                   .role = keeper::Role::kCommand,
                                   .wait_for_listener = kListens}));
  GMB_ASSIGN_OR_RETURN(
      const keeper::KeeperLink::Answer answer,
      link.Ask(keeper::Kind::kStatus, "", {}, keeper::Kind::kStatusIs));
  return keeper::DecodeStatus(answer.body);
}

}  // namespace

bool KeeperAnswers(const std::string& socket) {
  if (socket.empty()) {
    std::puts("keeper: none: leases and contents end with the broker");
    return true;
  }
  const absl::StatusOr<keeper::KeeperStatus> status = StatusOf(socket);
  if (!status.ok()) {
    std::printf("problem: keeper: %s\n",
                std::string(status.status().message()).c_str());
    return false;
  }
  std::printf("keeper: pid %d, %" PRIu64 " entries\n", status->pid,
              status->entries);
  return true;
}

}  // namespace gmb::broker
