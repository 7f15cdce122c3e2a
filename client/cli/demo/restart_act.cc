// The demo: the act in which the broker itself is killed.
#include "client/cli/demo/restart_act.h"

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

constexpr char kAsks[] = "batch";
constexpr absl::Duration kMeanwhileWait = absl::Seconds(30);

// Sessions by their ids, each with the leases that it has.
using Holdings = std::map<uint64_t, std::map<uint64_t, uint64_t>>;

absl::StatusOr<Holdings> WhoHoldsWhat(const Stage& stage) {
  Holdings holdings;
  GMB_ASSIGN_OR_RETURN(const v1::ListSessionsResponse sessions,
                       stage.admin().ListSessions(v1::ListSessionsRequest()));
  for (const v1::SessionInfo& session : sessions.sessions())
    holdings[session.id()];
  GMB_ASSIGN_OR_RETURN(const v1::ListLeasesResponse leases,
                       stage.admin().ListLeases(v1::ListLeasesRequest()));
  for (const v1::LeaseInfo& lease : leases.leases())
    holdings[lease.session_id()][lease.id()] = lease.bytes();
  return holdings;
}

uint64_t CountLeases(const Holdings& holdings) {
  uint64_t count = 0;
  for (const auto& [session, leases] : holdings) count += leases.size();
  return count;
}

}  // namespace

absl::Status ReplaceBroker(Stage& stage) {
  GMB_ASSIGN_OR_RETURN(const Holdings before, WhoHoldsWhat(stage));
  GMB_RETURN_IF_ERROR(stage.KillBroker());
  // Nobody needs a broker for what is mapped, and its answer can wait.
  GMB_RETURN_IF_ERROR(stage.VerifyAll());
  GMB_RETURN_IF_ERROR(stage.cast().Of(kAsks).AskLease(
      "more", stage.Twentieths(1), kMeanwhileWait, /*expect_zero=*/true));
  stage.Say(Tone::kPlain,
            absl::StrCat(kAsks, " asks for ", SizeText(stage.Twentieths(1)),
                         " more, and waits for a broker"));
  stage.LetPeopleLook();
  stage.Say(Tone::kPlain, "gmbd starts again, and asks the keeper");
  GMB_ASSIGN_OR_RETURN(const absl::Duration took, stage.StartBrokerAgain());
  GMB_RETURN_IF_ERROR(stage.AwaitGrant(kAsks).status());
  GMB_RETURN_IF_ERROR(stage.Release(kAsks, "more"));
  GMB_ASSIGN_OR_RETURN(const Holdings after, WhoHoldsWhat(stage));
  stage.Check(
      after == before && before.size() == stage.cast().Tenants().size(),
      "when the broker is killed, the next one has every session and lease",
      absl::StrCat(CountText(before.size(), "session"), " and ",
                   CountText(CountLeases(before), "lease"), " as before, and ",
                   kAsks, "'s request; the next broker answers after ",
                   DurationText(took)));
  return stage.VerifyAll();
}

}  // namespace gmb::cli
