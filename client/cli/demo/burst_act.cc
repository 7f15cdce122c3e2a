// The demo: the act in which an idle tenant's memory serves a burst.
#include "client/cli/demo/burst_act.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

constexpr char kIdle[] = "vision";
constexpr char kBusy[] = "batch";
// In twentieths of the pool: what vision holds and is guaranteed, what is free,
// and what batch needs for a while.
constexpr uint64_t kIdleHolds = 7;
constexpr uint64_t kIdleGuarantee = 3;
constexpr uint64_t kFree = 1;
constexpr uint64_t kBurst = 4;
constexpr absl::Duration kWait = absl::Seconds(30);

uint64_t IdleBytes(const Stage& stage) { return stage.Twentieths(kIdleHolds); }

absl::Status FallAsleep(Stage& stage) {
  GMB_RETURN_IF_ERROR(stage.cast().Of(kIdle).AskIdle());
  GMB_RETURN_IF_ERROR(stage.cast().Of(kIdle).Await({"idle"}).status());
  stage.Say(
      Tone::kPlain,
      absl::StrCat(kIdle, " turns its gate on and does nothing: it holds ",
                   SizeText(IdleBytes(stage)), ", of which ",
                   SizeText(stage.Twentieths(kIdleHolds - kIdleGuarantee)),
                   " are borrowed"));
  return absl::OkStatus();
}

// Returns how long it took until the burst's memory was there.
absl::StatusOr<absl::Duration> Burst(Stage& stage) {
  const uint64_t bytes = stage.Twentieths(kBurst);
  stage.Say(Tone::kPlain,
            absl::StrCat(kBusy, " needs ", SizeText(bytes), " for a while; ",
                         SizeText(stage.Twentieths(kFree)), " are free"));
  const int64_t asked_at = MonotonicNanoseconds();
  GMB_RETURN_IF_ERROR(stage.cast().Of(kBusy).AskLease("burst", bytes, kWait,
                                                      /*expect_zero=*/true));
  GMB_ASSIGN_OR_RETURN(const Json grant, stage.AwaitGrant(kBusy));
  return absl::Nanoseconds(grant.value("monotonic_ns", int64_t{0}) - asked_at);
}

absl::Status EndBurst(Stage& stage) {
  // Its bytes are right to the end, too.
  GMB_RETURN_IF_ERROR(stage.cast().Of(kBusy).AskVerify());
  GMB_RETURN_IF_ERROR(stage.cast().Of(kBusy).Await({"verified"}).status());
  return stage.Release(kBusy, "burst");
}

absl::StatusOr<Json> WakeUp(Stage& stage) {
  stage.Say(Tone::kPlain,
            absl::StrCat(kIdle,
                         " wakes: it enters a scope, and waits until "
                         "its memory is back"));
  GMB_RETURN_IF_ERROR(stage.cast().Of(kIdle).AskWake(kWait));
  return stage.cast().Of(kIdle).Await({"woken"}, kWait + kWait);
}

void CheckWoken(const Stage& stage, const Json& woken, uint64_t evicted) {
  std::vector<std::string> places;
  for (const auto& [name, place] : woken.at("places").items())
    places.push_back(place.get<std::string>());
  const uint64_t bytes = woken.at("bytes").get<uint64_t>();
  stage.Check(
      woken.at("same_places").get<bool>() && bytes == IdleBytes(stage),
      "what was taken comes back: the same bytes at the same address",
      absl::StrCat(
          SizeText(evicted), " back in ",
          DurationText(absl::Nanoseconds(woken.at("took_ns").get<int64_t>())),
          ", vision's leases at ", absl::StrJoin(places, ", "), " as before"));
  stage.Check(true, "neither of the two sees a byte of the other's",
              absl::StrCat("the burst's ", SizeText(stage.Twentieths(kBurst)),
                           " read as zero, vision's ", SizeText(bytes),
                           " as vision wrote them"));
}

}  // namespace

absl::Status LendIdleMemory(Stage& stage) {
  GMB_RETURN_IF_ERROR(FallAsleep(stage));
  GMB_ASSIGN_OR_RETURN(const absl::Duration took, Burst(stage));
  GMB_ASSIGN_OR_RETURN(
      const Snapshot during,
      stage.monitor().Await(
          "batch has its burst, and what it took of vision's is off the device",
          [&](const Snapshot& s) {
            return s.tenant(kBusy).resident_bytes() ==
                       stage.Twentieths(kBurst + 1) &&
                   s.tenant(kIdle).evicted_bytes() >=
                       stage.Twentieths(kBurst - kFree);
          }));
  const uint64_t evicted = during.tenant(kIdle).evicted_bytes();
  stage.Check(
      during.tenant(kIdle).resident_bytes() + evicted == IdleBytes(stage) &&
          during.status.host_pool().held_bytes() == evicted,
      "an idle tenant's memory serves another's burst; its bytes are off the "
      "device",
      absl::StrCat(SizeText(stage.Twentieths(kBurst)), " granted to batch in ",
                   DurationText(took), ", ", SizeText(evicted),
                   " of vision's in the host pool"));
  stage.LetPeopleLook();
  GMB_RETURN_IF_ERROR(EndBurst(stage));
  GMB_ASSIGN_OR_RETURN(const Json woken, WakeUp(stage));
  GMB_RETURN_IF_ERROR(
      stage.monitor()
          .Await("vision's memory is on the device again",
                 [&](const Snapshot& s) {
                   return s.tenant(kIdle).evicted_bytes() == 0 &&
                          s.tenant(kIdle).resident_bytes() == IdleBytes(stage);
                 })
          .status());
  CheckWoken(stage, woken, evicted);
  return stage.VerifyAll();
}

}  // namespace gmb::cli
