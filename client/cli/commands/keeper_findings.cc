// `gmb doctor`: what a keeper has that nobody serves.
#include "client/cli/commands/keeper_findings.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/keeper_look.h"
#include "client/cli/text/text.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/messages.h"

namespace gmb::cli {
namespace {

using keeper::KeeperStatus;

constexpr char kSubject[] = "keeper";

// Until a broker that lives has ended a session whose process has ended.
constexpr absl::Duration kEndsSessions = absl::Seconds(2);
constexpr absl::Duration kLookAgain = absl::Milliseconds(50);

absl::StatusOr<KeeperLook> Look(const std::string& socket) {
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link,
                       keeper::KeeperLink::Connect(
                           {.socket = socket, .role = keeper::Role::kCommand}));
  return LookAtKeeper(&link);
}

bool IsServed(const KeeperLook& seen) {
  return seen.status.broker == KeeperStatus::Broker::kServed;
}

// A broker that lives has a moment to end what has just ended.
absl::StatusOr<KeeperLook> LookTwice(const std::string& socket) {
  const absl::Time until = absl::Now() + kEndsSessions;
  absl::StatusOr<KeeperLook> seen = Look(socket);
  while (seen.ok() && IsServed(*seen) && seen->ended_sessions() > 0 &&
         absl::Now() < until) {
    absl::SleepFor(kLookAgain);
    seen = Look(socket);
  }
  return seen;
}

std::string Holdings(const KeeperLook& seen) {
  std::string text = CountText(seen.status.fds, "fd");
  if (!seen.count.has_value()) return text;
  absl::StrAppend(&text, " with ", SizeText(seen.count->memory_bytes),
                  " of host memory, ",
                  CountText(seen.count->sessions, "session"));
  if (seen.ended_sessions() > 0)
    absl::StrAppend(&text, " (", seen.ended_sessions(), " of ended processes)");
  return text;
}

// Memory that the driver shows as used, and shows with no process.
v1::Finding Orphans(const KeeperLook& seen, const std::string& socket) {
  const KeeperStatus& status = seen.status;
  const std::string end =
      status.gives_back_in_ms.has_value()
          ? absl::StrCat("all is given back in ",
                         DurationText(absl::Milliseconds(
                             static_cast<int64_t>(*status.gives_back_in_ms))))
          : std::string("it is kept for ever");
  return MakeFinding(
      v1::Finding::PROBLEM, kSubject,
      absl::StrCat("memory without a broker: the keeper, pid ", status.pid,
                   ", has ", Holdings(seen), ", of gmbd, ", BrokerName(status),
                   ", which has died, for ",
                   CountText(status.living_peers, "living client"), "; ", end,
                   ": start gmbd with --keeper ", socket,
                   ", or give it up with gmb keeper drop --socket ", socket));
}

v1::Finding OfServed(const KeeperLook& seen) {
  const int32_t pid = seen.status.broker_pid;
  const std::string name = BrokerName(seen.status);
  if (seen.ended_sessions() == 0) {
    return MakeFinding(
        v1::Finding::OK, kSubject,
        absl::StrCat("keeps ", Holdings(seen), ", for gmbd, ", name));
  }
  return MakeFinding(
      v1::Finding::WARNING, kSubject,
      absl::StrCat("sessions of ended processes are kept, ",
                   seen.ended_sessions(), " of ", seen.count->sessions,
                   ", and gmbd, ", name, ", does not end them: is it stopped",
                   pid > 0 ? absl::StrCat(" (kill -CONT ", pid, ")") : "",
                   ", or its machine overloaded?"));
}

v1::Finding FindingOf(const KeeperLook& seen, const std::string& socket) {
  const KeeperStatus& status = seen.status;
  switch (status.broker) {
    case KeeperStatus::Broker::kHungUp:
      return MakeFinding(
          v1::Finding::PROBLEM, kSubject,
          absl::StrCat(
              "gmbd, ", BrokerName(status),
              ", has hung up on its keeper and lives, so that no other one can "
              "take over: end it ",
              status.broker_pid > 0
                  ? absl::StrCat("(kill -KILL ", status.broker_pid, ")")
                  : "by restarting its container or its pod"));
    case KeeperStatus::Broker::kServed:
      return OfServed(seen);
    case KeeperStatus::Broker::kNone:
    case KeeperStatus::Broker::kDead:
      break;
  }
  if (status.entries > 0) return Orphans(seen, socket);
  return MakeFinding(v1::Finding::OK, kSubject,
                     "has nothing, and serves no broker");
}

}  // namespace

Findings CheckKeeper(const std::string& socket) {
  const std::string path = socket.empty() ? kUsualKeeper : socket;
  const absl::StatusOr<KeeperLook> seen = LookTwice(path);
  if (seen.ok()) return {FindingOf(*seen, path)};
  if (socket.empty()) return {};
  return {MakeFinding(v1::Finding::PROBLEM, kSubject,
                      std::string(seen.status().message()))};
}

}  // namespace gmb::cli
