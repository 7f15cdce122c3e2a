// `gmb doctor`: what a keeper has that nobody serves.
#include "client/cli/commands/keeper_findings.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::cli {
namespace {

using keeper::KeeperStatus;

constexpr char kSubject[] = "keeper";

absl::StatusOr<KeeperStatus> StatusOf(const std::string& socket) {
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link,
                       keeper::KeeperLink::Connect(
                           {.socket = socket, .role = keeper::Role::kCommand}));
  GMB_ASSIGN_OR_RETURN(
      const keeper::KeeperLink::Answer answer,
      link.Ask(keeper::Kind::kStatus, "", {}, keeper::Kind::kStatusIs));
  return keeper::DecodeStatus(answer.body);
}

// Memory that the driver shows as used, and shows with no process.
v1::Finding Orphans(const KeeperStatus& status, const std::string& socket) {
  const std::string end =
      status.gives_back_in_ms.has_value()
          ? absl::StrCat("all is given back in ",
                         DurationText(absl::Milliseconds(
                             static_cast<int64_t>(*status.gives_back_in_ms))))
          : std::string("it is kept for ever");
  return MakeFinding(
      v1::Finding::PROBLEM, kSubject,
      absl::StrCat("memory without a broker: the keeper, pid ", status.pid,
                   ", has ", CountText(status.fds, "fd"), " of gmbd, pid ",
                   status.broker_pid, ", which has died, for ",
                   CountText(status.living_peers, "living client"), "; ", end,
                   ": start gmbd with --keeper ", socket,
                   ", or give it up with gmb keeper drop --socket ", socket));
}

v1::Finding FindingOf(const KeeperStatus& status, const std::string& socket) {
  switch (status.broker) {
    case KeeperStatus::Broker::kHungUp:
      return MakeFinding(
          v1::Finding::PROBLEM, kSubject,
          absl::StrCat("gmbd, pid ", status.broker_pid,
                       ", has hung up on its keeper and lives, so that no "
                       "other one can take over: end it (kill -KILL ",
                       status.broker_pid, ")"));
    case KeeperStatus::Broker::kServed:
      return MakeFinding(v1::Finding::OK, kSubject,
                         absl::StrCat("keeps ", CountText(status.fds, "fd"),
                                      " for gmbd, pid ", status.broker_pid));
    case KeeperStatus::Broker::kNone:
    case KeeperStatus::Broker::kDead:
      break;
  }
  if (status.entries > 0) return Orphans(status, socket);
  return MakeFinding(v1::Finding::OK, kSubject,
                     "has nothing, and serves no broker");
}

}  // namespace

Findings CheckKeeper(const std::string& socket) {
  const std::string path = socket.empty() ? kUsualKeeper : socket;
  const absl::StatusOr<KeeperStatus> status = StatusOf(path);
  if (status.ok()) return {FindingOf(*status, path)};
  if (socket.empty()) return {};
  return {MakeFinding(v1::Finding::PROBLEM, kSubject,
                      std::string(status.status().message()))};
}

}  // namespace gmb::cli
