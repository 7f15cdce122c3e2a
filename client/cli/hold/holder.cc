// `gmb hold`: one run from the connection to the release.
#include "client/cli/hold/holder.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/hold/filled_lease.h"
#include "client/cli/hold/lease_steps.h"
#include "client/cli/hold/step_log.h"
#include "client/cli/tenant_identity.h"
#include "client/cli/text/text.h"
#include "gmb/client.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kSessionCheck = absl::Milliseconds(250);
// Memory that was taken comes back when those that took it let go.
constexpr absl::Duration kLeastWakeWait = absl::Minutes(1);

// One run of `gmb hold`.
class Holder {
 public:
  Holder(Context* context, const HoldOptions& options, std::stop_token stop)
      : options_(options),
        stop_(std::move(stop)),
        context_(context),
        log_(context) {}

  absl::Status Run();

 private:
  absl::Status Connect();
  // All leases there are to be.
  absl::Status GetLeases();
  absl::Status LeaseAndFill(uint32_t index);
  absl::Status AttachAndRead();
  absl::Status FallAsleep();
  // Idle leases are woken for it; those that cannot be are let go.
  absl::Status Verify();
  // Returns when it is time to let go, also because the session is over. An
  // error is one of waking up in between.
  absl::Status WaitForTheEnd();

  [[nodiscard]] AcquireOptions RequestOptions();
  [[nodiscard]] Pattern NextPattern(uint32_t index);
  void OnBudgetChanged(const QuotaView& quota);
  void OnDraining(absl::Duration remaining);

  const HoldOptions options_;
  const std::stop_token stop_;
  Context* const context_;
  StepLog log_;
  std::mutex mu_;
  std::condition_variable_any wake_;
  bool draining_ = false;  // guarded by mu_
  uint64_t seed_ = 0;
  std::unique_ptr<Client> client_;  // its handlers use what is above
  std::vector<FilledLease> leases_;
  absl::Status session_;  // how it ended, if it did while leases were held
};

absl::Status Holder::Connect() {
  ClientOptions options;
  options.tenant_token = options_.tenant_token;
  options.program = "gmb hold";
  options.on_budget_changed = [this](const QuotaView& quota) {
    OnBudgetChanged(quota);
  };
  options.on_draining = [this](absl::Duration remaining) {
    OnDraining(remaining);
  };
  GMB_ASSIGN_OR_RETURN(client_,
                       ConnectAsTenant(context_->socket_dir, options_.tenant,
                                       std::move(options)));
  context_->tenant = client_->tenant();
  log_.Say(
      "connected",
      absl::StrCat("as tenant ", client_->tenant(), ", session ",
                   client_->session_id(), ", gmbd ", client_->broker_version()),
      {{"tenant", client_->tenant()}, {"session_id", client_->session_id()}});
  for (const std::string& warning : client_->warnings()) {
    log_.Say("warning", warning, {{"message", warning}});
  }
  return absl::OkStatus();
}

AcquireOptions Holder::RequestOptions() {
  AcquireOptions request;
  request.device = options_.device;
  request.contents = options_.contents;
  request.share_as = options_.share_as;
  request.keep = options_.keep;
  request.wait = options_.wait;
  request.cancel = stop_;
  request.on_waiting = [this](uint64_t ahead) {
    log_.Say("waiting",
             absl::StrCat("for ", SizeText(options_.bytes), ", behind ", ahead,
                          " others"),
             {{"ahead", ahead}});
  };
  return request;
}

Pattern Holder::NextPattern(uint32_t index) {
  return options_.fill.has_value() ? Pattern::OfByte(*options_.fill)
                                   : Pattern::Seeded(seed_ + index);
}

absl::Status Holder::LeaseAndFill(uint32_t index) {
  const absl::Time asked = absl::Now();
  GMB_ASSIGN_OR_RETURN(Lease lease,
                       client_->Acquire(options_.bytes, RequestOptions()));
  const absl::Duration took = absl::Now() - asked;
  const std::string rounded =
      lease.size_bytes() == options_.bytes
          ? ""
          : absl::StrCat(" (rounded up from ", options_.bytes, " B)");
  log_.Say("leased",
           absl::StrCat(SizeText(lease.size_bytes()), rounded, " on ",
                        lease.device(), ", lease ", lease.id(), ", in ",
                        DurationText(took)),
           {{"lease_id", lease.id()},
            {"bytes", lease.size_bytes()},
            {"asked_bytes", options_.bytes},
            {"device", lease.device()},
            {"took", absl::ToDoubleSeconds(took)}});
  Pattern pattern = NextPattern(index);
  const std::string name = pattern.name();
  GMB_ASSIGN_OR_RETURN(
      FilledLease filled,
      FilledLease::Fill(std::move(lease), std::move(pattern), stop_));
  const bool whole = filled.known_bytes() == filled.lease().size_bytes();
  log_.Say("filled",
           absl::StrCat("lease ", filled.lease().id(), " with ", name,
                        ", checksum ", Checksum::Text(filled.checksum()),
                        whole ? ""
                              : absl::StrCat(", as far as ",
                                             SizeText(filled.known_bytes()),
                                             ": a signal asks for an end")),
           {{"lease_id", filled.lease().id()},
            {"filled_bytes", filled.known_bytes()},
            {"byte", options_.fill ? Json(*options_.fill) : Json()},
            {"seed", options_.fill ? Json() : Json(seed_ + index)},
            {"checksum", Checksum::Text(filled.checksum())}});
  leases_.push_back(std::move(filled));
  return absl::OkStatus();
}

absl::Status Holder::AttachAndRead() {
  const absl::Time asked = absl::Now();
  AttachOptions request;
  request.wait = options_.wait;
  request.cancel = stop_;
  GMB_ASSIGN_OR_RETURN(Lease lease, client_->Attach(options_.attach, request));
  const absl::Duration took = absl::Now() - asked;
  log_.Say("attached",
           absl::StrCat("to ", options_.attach, ": ",
                        SizeText(lease.size_bytes()), " on ", lease.device(),
                        ", lease ", lease.id(), ", in ", DurationText(took)),
           {{"name", options_.attach},
            {"lease_id", lease.id()},
            {"bytes", lease.size_bytes()},
            {"device", lease.device()},
            {"took", absl::ToDoubleSeconds(took)}});
  const bool known = options_.fill.has_value() || options_.seed.has_value();
  GMB_ASSIGN_OR_RETURN(
      FilledLease read,
      FilledLease::Read(std::move(lease),
                        known ? std::optional(NextPattern(0)) : std::nullopt));
  leases_.push_back(std::move(read));
  return absl::OkStatus();
}

absl::Status Holder::GetLeases() {
  if (!options_.attach.empty()) return AttachAndRead();
  for (uint32_t index = 0; index < options_.count; ++index) {
    if (index > 0 && stop_.stop_requested()) break;
    GMB_RETURN_IF_ERROR(LeaseAndFill(index));
  }
  return absl::OkStatus();
}

// The gate is on last: what was done before needs no scope.
absl::Status Holder::FallAsleep() {
  if (!options_.idle.has_value()) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(client_->TurnGateOn());
  const bool wakes = *options_.idle < absl::InfiniteDuration();
  log_.Say("idle",
           absl::StrCat("the gate is on, the memory may be taken",
                        wakes ? absl::StrCat("; woken every ",
                                             DurationText(*options_.idle))
                              : ""),
           {{"wakes_after",
             wakes ? Json(absl::ToDoubleSeconds(*options_.idle)) : Json()}});
  return absl::OkStatus();
}

absl::Status Holder::Verify() {
  if (!options_.idle.has_value()) return VerifyAll(leases_, &log_);
  const absl::Duration wait = std::max(options_.wait, kLeastWakeWait);
  absl::Status woken =
      WakeAll(client_.get(), options_.contents, wait, &leases_, &log_);
  if (woken.ok() || client_->status().ok()) return woken;
  session_ = client_->status();
  return VerifyMapped(options_.contents, &leases_, &log_);
}

absl::Status Holder::WaitForTheEnd() {
  const absl::Time end = absl::Now() + options_.hold;
  log_.Say("holding", options_.hold == absl::InfiniteDuration()
                          ? "until Ctrl-C"
                          : absl::StrCat("for ", DurationText(options_.hold)));
  const absl::Duration idle = options_.idle.value_or(absl::InfiniteDuration());
  absl::Time wake = absl::Now() + idle;
  std::unique_lock<std::mutex> lock(mu_);
  while (!stop_.stop_requested() && !draining_ && absl::Now() < end) {
    if (session_ = client_->status(); !session_.ok()) return absl::OkStatus();
    if (absl::Now() >= wake) {
      lock.unlock();
      GMB_RETURN_IF_ERROR(Verify());
      lock.lock();
      wake = absl::Now() + idle;
      continue;
    }
    const absl::Duration left =
        std::min(std::min(end, wake) - absl::Now(), kSessionCheck);
    wake_.wait_for(lock, stop_, absl::ToChronoNanoseconds(left),
                   [this] { return draining_; });
  }
  lock.unlock();
  if (stop_.stop_requested()) log_.Say("stopping", "a signal asks for it");
  return absl::OkStatus();
}

void Holder::OnBudgetChanged(const QuotaView& quota) {
  log_.Say("budget",
           absl::StrCat("changed: guarantee ", SizeText(quota.guarantee_bytes),
                        ", limit ", SizeText(quota.limit_bytes), ", leased ",
                        SizeText(quota.leased_bytes),
                        quota.over_limit_bytes == 0
                            ? ""
                            : absl::StrCat(", over its limit by ",
                                           SizeText(quota.over_limit_bytes))),
           {{"device", quota.device},
            {"guarantee_bytes", quota.guarantee_bytes},
            {"limit_bytes", quota.limit_bytes},
            {"leased_bytes", quota.leased_bytes},
            {"over_limit_bytes", quota.over_limit_bytes}});
}

void Holder::OnDraining(absl::Duration remaining) {
  log_.Say("draining",
           absl::StrCat("the broker stops, or this tenant is being deleted, "
                        "within ",
                        DurationText(remaining)),
           {{"remaining", absl::ToDoubleSeconds(remaining)}});
  const std::lock_guard<std::mutex> lock(mu_);
  draining_ = true;
  wake_.notify_all();
}

absl::Status Holder::Run() {
  seed_ = options_.seed.has_value() ? *options_.seed : std::random_device{}();
  GMB_RETURN_IF_ERROR(Connect());
  GMB_RETURN_IF_ERROR(GetLeases());
  // One that is to end may be filled in part, and is verified below.
  if (!stop_.stop_requested()) {
    GMB_RETURN_IF_ERROR(VerifyAll(leases_, &log_));
    if (options_.seal || !options_.share_as.empty()) {
      GMB_RETURN_IF_ERROR(SealAll(&leases_, &log_));
    }
  }
  GMB_RETURN_IF_ERROR(FallAsleep());
  GMB_RETURN_IF_ERROR(WaitForTheEnd());
  // Memory stays mapped when the broker is gone, so it can be judged still.
  GMB_RETURN_IF_ERROR(Verify());
  GMB_RETURN_IF_ERROR(ReleaseAll(&leases_, &log_));
  return session_;
}

}  // namespace

absl::StatusOr<ExitCode> Hold(Context& context, const HoldOptions& options,
                              std::stop_token stop) {
  Holder holder(&context, options, std::move(stop));
  GMB_RETURN_IF_ERROR(holder.Run());
  return ExitCode::kOk;
}

}  // namespace gmb::cli
