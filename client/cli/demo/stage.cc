// The demo: the steps that acts are made of.
#include "client/cli/demo/stage.h"

#include <time.h>

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kReadingTime = absl::Milliseconds(900);
constexpr absl::Duration kGlance = absl::Milliseconds(350);
// How long a request may wait; the story never needs it all.
constexpr absl::Duration kGrantWait = absl::Seconds(30);

std::string Text(const Json& event, const char* key) {
  return event.contains(key) ? event.at(key).get<std::string>() : "";
}

}  // namespace

int64_t MonotonicNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

Stage::Stage(const Parts& parts)
    : parts_(parts),
      watch_(parts.broker, parts.stop,
             [screen = parts.screen](const Snapshot& s) { screen->Show(s); }),
      cast_({.broker = parts.broker,
             .dir = parts.dir,
             .interrupt_fd = parts.interrupt_fd}) {}

absl::Status Stage::Open() {
  watch_.Begin();
  GMB_ASSIGN_OR_RETURN(
      const Snapshot first,
      monitor().Await("a first answer", [](const Snapshot&) { return true; }));
  const v1::PoolStatus& pool = first.pool();
  const uint64_t granularity =
      std::max<uint64_t>(1, pool.device().granularity_bytes());
  capacity_ = pool.capacity_bytes();
  twentieth_ = capacity_ / 20 / granularity * granularity;
  if (twentieth_ == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the pool is too small for the demo: it takes 20 x ",
                     SizeText(granularity), ": pool=", SizeText(capacity_)));
  }
  return absl::OkStatus();
}

void Stage::BeginAct(const std::string& title) {
  parts_.screen->LetPeopleLook(kReadingTime, parts_.stop);
  parts_.screen->BeginAct(title);
  parts_.screen->LetPeopleLook(kGlance, parts_.stop);
}

void Stage::LetPeopleLook() const {
  parts_.screen->LetPeopleLook(kReadingTime, parts_.stop);
}

void Stage::Check(bool passed, const std::string& claim,
                  const std::string& measured) const {
  Say(passed ? Tone::kGood : Tone::kBad,
      absl::StrCat(passed ? "ok: " : "WRONG: ", measured));
  parts_.checks->Record(passed, claim, measured);
}

absl::Status Stage::Enter(const std::string& tenant) {
  GMB_RETURN_IF_ERROR(cast_.Enter(tenant));
  parts_.screen->Note(
      tenant, absl::StrCat("process ", cast_.Of(tenant).process().pid()));
  return absl::OkStatus();
}

absl::Status Stage::Lease(const std::string& tenant, const std::string& name,
                          uint64_t bytes) {
  GMB_RETURN_IF_ERROR(
      cast_.Of(tenant).AskLease(name, bytes, absl::ZeroDuration()));
  GMB_ASSIGN_OR_RETURN(const Json answer,
                       cast_.Of(tenant).Await({"granted", "refused"}));
  if (answer.at("event") == "refused") {
    return absl::ResourceExhaustedError(absl::StrCat(tenant, " was refused ",
                                                     SizeText(bytes), ": ",
                                                     Text(answer, "message")));
  }
  GMB_ASSIGN_OR_RETURN(const Json filled, cast_.Of(tenant).Await({"filled"}));
  Say(Tone::kPlain,
      absl::StrCat(tenant, " leases ", SizeText(bytes), " (", name,
                   ") and fills it, checksum ", Text(filled, "checksum")));
  parts_.screen->LetPeopleLook(kGlance, parts_.stop);
  return absl::OkStatus();
}

absl::Status Stage::Release(const std::string& tenant,
                            const std::string& name) {
  Say(Tone::kPlain, absl::StrCat(tenant, " releases ", name));
  GMB_RETURN_IF_ERROR(cast_.Of(tenant).AskRelease(name));
  return cast_.Of(tenant).Await({"released"}).status();
}

absl::StatusOr<Json> Stage::LeaseRefused(const std::string& tenant,
                                         uint64_t bytes) {
  Say(Tone::kPlain,
      absl::StrCat(tenant, " asks for ", SizeText(bytes), " more"));
  GMB_RETURN_IF_ERROR(
      cast_.Of(tenant).AskLease("more", bytes, absl::ZeroDuration()));
  absl::StatusOr<Json> answer = cast_.Of(tenant).Await({"granted", "refused"});
  if (!answer.ok()) return answer.status();
  if (answer->at("event") == "granted") {
    return absl::FailedPreconditionError(
        absl::StrCat(tenant, " was granted ", SizeText(bytes),
                     " that it should be refused"));
  }
  Say(Tone::kWarning, absl::StrCat("refused, ", Text(*answer, "reason"), ": ",
                                   Text(*answer, "message")));
  parts_.screen->LetPeopleLook(kGlance, parts_.stop);
  return answer;
}

absl::Status Stage::LeaseWaits(const std::string& tenant,
                               const std::string& name, uint64_t bytes,
                               bool expect_zero) {
  Say(Tone::kPlain,
      absl::StrCat(tenant, " asks for ", SizeText(bytes),
                   " more and is ready to wait ", DurationText(kGrantWait)));
  GMB_RETURN_IF_ERROR(
      cast_.Of(tenant).AskLease(name, bytes, kGrantWait, expect_zero));
  GMB_ASSIGN_OR_RETURN(const Json told, cast_.Of(tenant).Await(
                                            {"waiting", "granted", "refused"}));
  if (told.at("event") != "waiting") {
    return absl::FailedPreconditionError(
        absl::StrCat(tenant, " was answered \"", Text(told, "event"),
                     "\" where it should wait"));
  }
  GMB_RETURN_IF_ERROR(monitor()
                          .Await(absl::StrCat(tenant, " waits"),
                                 [&](const Snapshot& snapshot) {
                                   return snapshot.tenant(tenant).waiting() ==
                                          1;
                                 })
                          .status());
  v1::ExplainRequest request;
  request.set_tenant(tenant);
  GMB_ASSIGN_OR_RETURN(const v1::ExplainResponse why, admin().Explain(request));
  if (!why.findings().empty()) {
    Say(Tone::kFaint, absl::StrCat("gmb why ", tenant, ": ", why.findings(0)));
  }
  parts_.screen->LetPeopleLook(kReadingTime, parts_.stop);
  return absl::OkStatus();
}

absl::StatusOr<Json> Stage::AwaitGrant(const std::string& tenant) {
  absl::StatusOr<Json> answer =
      cast_.Of(tenant).Await({"granted", "refused"}, kGrantWait + kGrantWait);
  if (!answer.ok()) return answer.status();
  if (answer->at("event") == "refused") {
    return absl::ResourceExhaustedError(absl::StrCat(
        tenant,
        " was refused after it had waited: ", Text(*answer, "message")));
  }
  GMB_RETURN_IF_ERROR(cast_.Of(tenant).Await({"filled"}).status());
  return answer;
}

absl::Status Stage::VerifyAll() {
  GMB_ASSIGN_OR_RETURN(const uint64_t bytes, cast_.Verify());
  Say(Tone::kGood,
      absl::StrCat("all ", cast_.Tenants().size(), " processes read back ",
                   SizeText(bytes), ": every byte and checksum is right"));
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> Stage::SetLimit(const std::string& tenant,
                                           double fraction) {
  v1::SetTenantRequest request;
  request.set_name(tenant);
  request.mutable_limit()->set_fraction(fraction);
  Say(Tone::kPlain, absl::StrCat("the operator: gmb tenant set ", tenant,
                                 " --limit ", AmountText(request.limit())));
  GMB_ASSIGN_OR_RETURN(const v1::SetTenantResponse answer,
                       admin().SetTenant(request));
  if (answer.changes().empty())
    return absl::InternalError("the broker named no change");
  // The process is told as well.
  GMB_RETURN_IF_ERROR(cast_.Of(tenant).Await({"budget"}).status());
  return answer.changes(0);
}

absl::Status Stage::Quit(const std::string& tenant) {
  GMB_RETURN_IF_ERROR(cast_.Of(tenant).AskQuit());
  // A failure on the way out is said before the process ends.
  const absl::StatusOr<Json> last = cast_.Of(tenant).Await({"never"});
  if (!absl::IsUnavailable(last.status())) return last.status();
  GMB_ASSIGN_OR_RETURN(
      const std::string ended,
      cast_.Of(tenant).process().Wait(absl::Now() + absl::Seconds(10)));
  if (ended != "exit code 0") {
    return absl::InternalError(
        absl::StrCat("the process of ", tenant, " ended with ", ended));
  }
  cast_.Leave(tenant);
  return absl::OkStatus();
}

void Stage::Kill(const std::string& tenant) {
  ChildProcess& victim = cast_.Of(tenant).process();
  victim.Signal(SIGKILL);
  parts_.screen->Note(tenant, "killed");
  Say(Tone::kWarning,
      absl::StrCat("kill -9 ", victim.pid(), " (", tenant, ")"));
}

absl::Status Stage::KillBroker() {
  Close();
  Say(Tone::kWarning,
      absl::StrCat("kill -9 ", parts_.broker->pid(), " (the broker)"));
  GMB_ASSIGN_OR_RETURN(const std::string ended,
                       parts_.broker->Kill(absl::Seconds(10)));
  if (ended == "signal 9") return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the broker ended with ", ended));
}

absl::StatusOr<absl::Duration> Stage::StartBrokerAgain() {
  const int64_t from = MonotonicNanoseconds();
  GMB_RETURN_IF_ERROR(parts_.broker->StartAgain());
  const absl::Duration took = absl::Nanoseconds(MonotonicNanoseconds() - from);
  watch_.Begin();
  return took;
}

}  // namespace gmb::cli
