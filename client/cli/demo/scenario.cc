// The demo: its tenants, and the acts before the burst.
#include "client/cli/demo/scenario.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/demo/burst_act.h"
#include "client/cli/demo/restart_act.h"
#include "client/cli/text/text.h"

// All amounts are twentieths of the pool. Before act 6 no process lets its
// memory be taken (none uses the gate), so what a tenant holds above its
// guarantee must fit beside the guarantees of the others: the sum of
// max(guarantee, held) is at most 20. In act 6 vision does, and of what it
// holds its guarantee alone counts.
//
//            guarantee  limit   act 1  act 3  act 4    act 5      act 6   7  8
//   chat         5      6 -> 8    5      5      7        7          7      7  0
//   search       4     10 -> 6    4      8      8, 4     4          4      4  0
//   vision       3       12       3      3      3        3 -> 7     7 (3)  7  0
//   batch        0       20       6      1      1        5 -> 0, 1  5, 1   2  0
//   sum of max                    18     17     19, 15   19, 18, 19 19, 15 20

namespace gmb::cli {
namespace {

constexpr absl::Duration kSlowestRegrant = absl::Seconds(5);

absl::Status LeaseUnderFractions(Stage& stage) {
  stage.BeginAct(
      "Act 1 of 8: four tenants lease under their fractions of the pool");
  for (const char* const tenant : {"chat", "search", "vision", "batch"}) {
    GMB_RETURN_IF_ERROR(stage.Enter(tenant));
  }
  struct Wish {
    const char* tenant;
    const char* name;
    uint64_t twentieths;
  };
  for (const Wish& wish :
       {Wish{"chat", "weights", 5}, Wish{"search", "weights", 4},
        Wish{"vision", "weights", 3}, Wish{"batch", "large", 5},
        Wish{"batch", "small", 1}}) {
    const uint64_t bytes = stage.Twentieths(wish.twentieths);
    GMB_RETURN_IF_ERROR(stage.Lease(wish.tenant, wish.name, bytes));
  }
  const uint64_t expected = stage.Twentieths(18);
  GMB_ASSIGN_OR_RETURN(
      const Snapshot seen,
      stage.monitor().Await("90% of the pool is granted",
                            [&](const Snapshot& s) {
                              return s.pool().granted_bytes() == expected;
                            }));
  stage.Check(
      true, "four processes lease under guarantees of 25%, 20%, 15% and none",
      absl::StrCat(SizeText(expected), " granted in ",
                   CountText(seen.status.leases(), "lease"), ", batch borrows ",
                   SizeText(seen.tenant("batch").borrowed_bytes())));
  return stage.VerifyAll();
}

absl::Status RefuseAtLimit(Stage& stage) {
  stage.BeginAct("Act 2 of 8: a tenant is refused at its limit");
  GMB_ASSIGN_OR_RETURN(const Json refusal,
                       stage.LeaseRefused("chat", stage.Twentieths(2)));
  GMB_ASSIGN_OR_RETURN(const Snapshot seen,
                       stage.monitor().Await(
                           "a snapshot", [](const Snapshot&) { return true; }));
  const uint64_t limit = seen.tenant("chat").view().limit_bytes();
  const uint64_t deficit = refusal.value("deficit_bytes", uint64_t{0});
  const std::string reason = refusal.value("reason", "none");
  stage.Check(reason == "TENANT_LIMIT" &&
                  deficit == stage.Twentieths(7) - limit &&
                  seen.pool().granted_bytes() == stage.Twentieths(18),
              "a request above the limit is refused, with the reason and the "
              "bytes too many",
              absl::StrCat(reason, ", ", SizeText(deficit),
                           " above the limit of ", SizeText(limit)));
  return stage.VerifyAll();
}

absl::Status WaitForRelease(Stage& stage) {
  stage.BeginAct("Act 3 of 8: a request waits until another tenant releases");
  GMB_RETURN_IF_ERROR(stage.LeaseWaits("search", "cache", stage.Twentieths(4)));
  const int64_t released_at = MonotonicNanoseconds();
  GMB_RETURN_IF_ERROR(stage.Release("batch", "large"));
  GMB_ASSIGN_OR_RETURN(const Json grant, stage.AwaitGrant("search"));
  const absl::Duration after =
      absl::Nanoseconds(grant.value("monotonic_ns", int64_t{0}) - released_at);
  stage.Check(
      after > absl::ZeroDuration(),
      "a request waits in the queue and is granted when another tenant "
      "releases",
      absl::StrCat(SizeText(stage.Twentieths(4)), " granted to search ",
                   DurationText(after), " after batch began to release"));
  return stage.VerifyAll();
}

absl::Status RaiseLimit(Stage& stage) {
  GMB_ASSIGN_OR_RETURN(const v1::Change raised, stage.SetLimit("chat", 0.40));
  GMB_RETURN_IF_ERROR(stage.Lease("chat", "cache", stage.Twentieths(2)));
  stage.Check(
      raised.state() == v1::Change::APPLIED,
      "a limit raised while processes run serves what was refused before",
      absl::StrCat(
          "chat's limit 30% to 40%: ", v1::Change::State_Name(raised.state()),
          ", ", SizeText(stage.Twentieths(2)), " granted"));
  return absl::OkStatus();
}

absl::Status LowerLimit(Stage& stage) {
  GMB_ASSIGN_OR_RETURN(const v1::Change lowered,
                       stage.SetLimit("search", 0.30));
  GMB_ASSIGN_OR_RETURN(const Json refusal,
                       stage.LeaseRefused("search", stage.Twentieths(1)));
  GMB_RETURN_IF_ERROR(stage.VerifyAll());
  GMB_RETURN_IF_ERROR(stage.Release("search", "cache"));
  GMB_RETURN_IF_ERROR(
      stage.monitor()
          .Await("search is within its limit again",
                 [&](const Snapshot& s) {
                   const v1::TenantPool pool = s.tenant("search");
                   const v1::QuotaView& view = pool.view();
                   return view.over_limit_bytes() == 0 &&
                          view.leased_bytes() == stage.Twentieths(4);
                 })
          .status());
  stage.Check(lowered.state() == v1::Change::PENDING &&
                  lowered.remaining_bytes() > 0 &&
                  refusal.value("reason", "") == "TENANT_LIMIT",
              "a limit lowered below what is held takes nothing away, and "
              "holds for new requests",
              absl::StrCat("search's limit 50% to 30%: ",
                           v1::Change::State_Name(lowered.state()), " with ",
                           SizeText(lowered.remaining_bytes()),
                           " over, 0 B after search released"));
  return stage.VerifyAll();
}

absl::Status ChangeLimits(Stage& stage) {
  stage.BeginAct("Act 4 of 8: limits change while the processes run");
  GMB_RETURN_IF_ERROR(RaiseLimit(stage));
  return LowerLimit(stage);
}

absl::Status KillAndRegrant(Stage& stage) {
  stage.BeginAct(
      "Act 5 of 8: a process is killed, and its memory is granted again");
  GMB_RETURN_IF_ERROR(stage.Lease("batch", "large", stage.Twentieths(4)));
  GMB_RETURN_IF_ERROR(stage.LeaseWaits("vision", "cache", stage.Twentieths(4),
                                       /*expect_zero=*/true));
  const int64_t killed_at = MonotonicNanoseconds();
  stage.Kill("batch");
  GMB_ASSIGN_OR_RETURN(const Json grant, stage.AwaitGrant("vision"));
  const absl::Duration after =
      absl::Nanoseconds(grant.value("monotonic_ns", int64_t{0}) - killed_at);
  GMB_ASSIGN_OR_RETURN(
      const std::string ended,
      stage.cast().Of("batch").process().Wait(absl::Now() + absl::Seconds(10)));
  stage.Check(
      ended == "signal 9" && after > absl::ZeroDuration() &&
          after < kSlowestRegrant,
      "memory of a process killed with SIGKILL is granted to a tenant that "
      "waits",
      absl::StrCat(SizeText(stage.Twentieths(4)), " granted and mapped ",
                   DurationText(after), " after the kill"));
  stage.Check(
      true, "no byte of the dead process is seen by the next tenant",
      absl::StrCat("all ", SizeText(stage.Twentieths(4)), " read as zero"));
  GMB_RETURN_IF_ERROR(stage.Enter("batch"));
  GMB_RETURN_IF_ERROR(stage.Lease("batch", "small", stage.Twentieths(1)));
  return stage.VerifyAll();
}

absl::Status ServeBurst(Stage& stage) {
  stage.BeginAct(
      "Act 6 of 8: an idle tenant's memory serves a burst, and comes back");
  return LendIdleMemory(stage);
}

absl::Status ServeThroughDeath(Stage& stage) {
  stage.BeginAct("Act 7 of 8: the broker is killed, and everything goes on");
  return ReplaceBroker(stage);
}

absl::Status LeaveCleanly(Stage& stage) {
  stage.BeginAct("Act 8 of 8: everybody leaves, and nothing is left behind");
  for (const std::string& tenant : stage.cast().Tenants()) {
    GMB_RETURN_IF_ERROR(stage.Quit(tenant));
  }
  GMB_ASSIGN_OR_RETURN(
      const Snapshot empty,
      stage.monitor().Await(
          "nothing is leased, unreturned or missing", [](const Snapshot& s) {
            return s.status.leases() == 0 && s.pool().granted_bytes() == 0 &&
                   s.pool().unreturned_bytes() == 0 &&
                   s.pool().missing_bytes() == 0 && s.pool().waiting() == 0;
          }));
  stage.Check(empty.pool().capacity_bytes() == stage.capacity_bytes(),
              "the pool is whole again when all have left",
              absl::StrCat("0 B granted, unreturned or missing of ",
                           SizeText(empty.pool().capacity_bytes())));
  return absl::OkStatus();
}

}  // namespace

std::string ScenarioConfig() {
  return "tenants:\n"
         "  - {name: chat, guarantee: 25%, limit: 30%, weight: 2}\n"
         "  - {name: search, guarantee: 20%, limit: 50%, weight: 1}\n"
         "  - {name: vision, guarantee: 15%, limit: 60%, weight: 1}\n"
         "  - {name: batch, guarantee: 0%, limit: 100%, weight: 1}\n";
}

absl::Status PlayScenario(Stage& stage) {
  GMB_RETURN_IF_ERROR(stage.Open());
  for (const auto act :
       {&LeaseUnderFractions, &RefuseAtLimit, &WaitForRelease, &ChangeLimits,
        &KillAndRegrant, &ServeBurst, &ServeThroughDeath, &LeaveCleanly}) {
    GMB_RETURN_IF_ERROR(act(stage));
  }
  stage.Check(
      stage.cast().verifications() > 0,
      "contents are right throughout, by byte and checksum",
      absl::StrFormat(
          "%d readings of all leases of a process, %s in all, 0 B wrong",
          stage.cast().verifications(),
          SizeText(stage.cast().verified_bytes())));
  return absl::OkStatus();
}

}  // namespace gmb::cli
