// A session's gate: tells the broker that it is on or off, and asks for memory
// that is away.
#include "client/session/gate_switch.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "client/lease/mapped_lease.h"
#include "client/no_throw.h"
#include "client/wire.h"
#include "gmb/error.h"

namespace gmb::internal {

namespace {

// An idler is in SYNC for a moment, and waits for nothing there.
GateOptions OptionsFor(bool automatic) {
  GateOptions options;
  if (!automatic) return options;
  options.parks_by_itself = false;
  options.sync_patience = absl::ZeroDuration();
  return options;
}

}  // namespace

GateSwitch::GateSwitch(ipc::GatePage page, bool has_gate, bool automatic,
                       Calls* calls, Mover* mover)
    : has_gate_(has_gate),
      calls_(*calls),
      mover_(*mover),
      automatic_(automatic),
      gate_(std::move(page), static_cast<GateOwner*>(this),
            OptionsFor(automatic)) {}

v1::ClientMessage GateSwitch::SetGate(bool on) const {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(on);
  if (on || automatic_) message.mutable_set_gate()->set_group(group_);
  return message;
}

absl::Status GateSwitch::JoinGroup(const std::string& group) {
  base::MutexLock lock(&mu_);
  group_ = group;
  absl::Status joined = AskForGroup().status();
  if (!joined.ok()) group_.clear();
  return joined;
}

absl::StatusOr<uint32_t> GateSwitch::CountGroup() {
  base::MutexLock lock(&mu_);
  return AskForGroup();
}

absl::StatusOr<uint32_t> GateSwitch::AskForGroup() {
  GMB_ASSIGN_OR_RETURN(const Answer answer, calls_.Ask(SetGate(false)));
  const auto* const set = std::get_if<v1::GateSet>(&answer);
  if (set == nullptr || set->group() != group_) {
    return absl::FailedPreconditionError(
        "gmb: the broker is older than this library, and would close others of "
        "the group without this process: update it, or go without a group");
  }
  return set->group_members();
}

absl::Status GateSwitch::TurnOn(absl::Duration park_after,
                                const std::string& group) {
  GMB_RETURN_IF_ERROR(calls_.CheckAlive());
  if (!has_gate_) {
    return absl::FailedPreconditionError(
        "gmb: the broker has no gates that this library knows; update the "
        "older of the two, or leave the gate off");
  }
  base::MutexLock lock(&mu_);
  const std::string old_group = std::exchange(group_, group);
  if (gate_.on()) {
    // It goes on as before if the broker does not agree.
    absl::Status agreed = calls_.Ask(SetGate(true)).status();
    if (agreed.ok()) return gate_.TurnOn(park_after);
    group_ = old_group;
    return agreed;
  }
  GMB_RETURN_IF_ERROR(gate_.TurnOn(park_after));
  absl::Status told = calls_.Ask(SetGate(true)).status();
  if (told.ok()) return told;
  // The broker takes nothing before it has agreed, so this need not wait.
  gate_.TurnOff(calls_.answer_timeout()).IgnoreError();
  if (!GetErrorDetail(told).has_value()) {
    calls_.Send(SetGate(false));  // it may agree yet
  }
  return told;
}

absl::Status GateSwitch::TurnOff(absl::Duration wait) {
  GMB_RETURN_IF_ERROR(calls_.CheckAlive());
  base::MutexLock lock(&mu_);
  if (!gate_.on()) return absl::OkStatus();
  // First all of its memory is there, and stays: the broker cannot promise
  // for what is away.
  GMB_RETURN_IF_ERROR(gate_.TurnOff(wait));
  absl::Status told = calls_.Ask(SetGate(false)).status();
  if (told.ok()) return told;
  if (!GetErrorDetail(told).has_value()) {
    calls_.Send(SetGate(true));  // it may have agreed
  }
  gate_.TurnOn().IgnoreError();  // it goes on as before
  return told;
}

void GateSwitch::SayNeverLends(const std::string& why) {
  base::MutexLock lock(&mu_);
  v1::ClientMessage message = SetGate(gate_.on());
  std::string text = why;  // the wire takes UTF-8 alone
  std::replace_if(
      text.begin(), text.end(),
      [](char c) {
        return !absl::ascii_isprint(static_cast<unsigned char>(c));
      },
      ' ');
  message.mutable_set_gate()->set_never_lends(std::move(text));
  calls_.Ask(std::move(message)).status().IgnoreError();
}

void GateSwitch::PauseNoticed() {
  gate_.PauseNoticed();
  TellListener();
}

void GateSwitch::TellListener() {
  const base::MutexLock lock(&listener_mu_);
  if (listener_) listener_();
}

void GateSwitch::SetListener(std::function<void()> listener) {
  const base::MutexLock lock(&listener_mu_);
  listener_ = std::move(listener);
}

// All threads of an unchanged program may stand at the gate at once: one asks,
// and the others look at the gate again.
bool GateSwitch::MayAsk(std::chrono::steady_clock::time_point deadline) {
  const base::MutexLock lock(&restore_mu_);
  if (!restoring_) return restoring_ = true;
  while (restoring_ && restored_.WaitUntil(&restore_mu_, deadline)) {
  }
  return false;
}

absl::Status GateSwitch::Restore(
    std::chrono::steady_clock::time_point deadline) {
  return NoThrow([&]() -> absl::Status {
    if (automatic_ && !MayAsk(deadline)) return absl::OkStatus();
    const absl::Cleanup asked = [this] {
      const base::MutexLock lock(&restore_mu_);
      restoring_ = false;
      restored_.NotifyAll();
    };
    v1::ClientMessage message;
    *message.mutable_restore()->mutable_wait() = DurationToWire(
        std::min(absl::FromChrono(deadline - std::chrono::steady_clock::now()),
                 absl::Hours(1)));
    return calls_.AskUntil(std::move(message), deadline).status();
  });
}

absl::Status GateSwitch::Synchronize() {
  return NoThrow([&]() -> absl::Status {
    // A device once, however many leases it has.
    std::set<
        std::pair<std::shared_ptr<device::Mapper>, std::vector<std::string>>>
        devices;
    for (const std::shared_ptr<MappedLease>& lease : mover_.Leases()) {
      devices.emplace(lease->mapper(), lease->access());
    }
    for (const auto& [mapper, access] : devices) {
      GMB_RETURN_IF_ERROR(mapper->Synchronize(access));
    }
    return absl::OkStatus();
  });
}

}  // namespace gmb::internal
