// The questions of `gmb keeper status` and `gmb doctor` to a keeper.
#include "client/cli/commands/keeper_look.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "keeper/wire/frame.h"

namespace gmb::cli {

std::string BrokerName(const keeper::KeeperStatus& status) {
  return status.broker_pid > 0 ? absl::StrCat("pid ", status.broker_pid)
                               : "in another pid namespace";
}

absl::StatusOr<KeeperLook> LookAtKeeper(keeper::KeeperLink* link) {
  GMB_ASSIGN_OR_RETURN(
      const keeper::KeeperLink::Answer answer,
      link->Ask(keeper::Kind::kStatus, "", {}, keeper::Kind::kStatusIs));
  KeeperLook look;
  GMB_ASSIGN_OR_RETURN(look.status, keeper::DecodeStatus(answer.body));
  // One of an older release hangs up on a question that it does not know.
  const absl::StatusOr<keeper::KeeperLink::Answer> counted =
      link->Ask(keeper::Kind::kCount, "", {}, keeper::Kind::kCountIs);
  if (!counted.ok()) return look;
  GMB_ASSIGN_OR_RETURN(look.count, keeper::DecodeCount(counted->body));
  return look;
}

}  // namespace gmb::cli
