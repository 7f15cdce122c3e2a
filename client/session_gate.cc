// What a session does for its gate, and what it lends to others.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/no_throw.h"
#include "client/session.h"
#include "client/wire.h"
#include "gmb/error.h"

namespace gmb::internal {

absl::Status Session::SetGate(bool on) {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(on);
  if (on) message.mutable_set_gate()->set_group(group_);
  return Ask(std::move(message), answer_timeout_).status();
}

void Session::SendGate(bool on) {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(on);
  if (on) message.mutable_set_gate()->set_group(group_);
  Send(std::move(message));
}

absl::Status Session::TurnGateOn(absl::Duration park_after,
                                 const std::string& group) {
  if (absl::Status alive = CheckAlive(); !alive.ok()) return alive;
  if (!has_gate_) {
    return absl::FailedPreconditionError(
        "gmb: the broker has no gates that this library knows; update the "
        "older of the two, or leave the gate off");
  }
  ipc::MutexLock lock(&switch_mu_);
  const bool was_on = gate_->on();
  group_ = group;
  if (absl::Status on = gate_->TurnOn(park_after); !on.ok()) return on;
  absl::Status told = SetGate(true);
  if (told.ok() || was_on) return told;
  // The broker takes nothing before it has agreed, so this need not wait.
  gate_->TurnOff(answer_timeout_).IgnoreError();
  if (!GetErrorDetail(told).has_value()) SendGate(false);  // it may agree yet
  return told;
}

absl::Status Session::TurnGateOff(absl::Duration wait) {
  if (absl::Status alive = CheckAlive(); !alive.ok()) return alive;
  ipc::MutexLock lock(&switch_mu_);
  if (!gate_->on()) return absl::OkStatus();
  // First all of its memory is there, and stays: the broker can not promise
  // for what is away.
  if (absl::Status off = gate_->TurnOff(wait); !off.ok()) return off;
  absl::Status told = SetGate(false);
  if (told.ok()) return told;
  if (!GetErrorDetail(told).has_value()) SendGate(true);  // it may have agreed
  gate_->TurnOn().IgnoreError();  // it goes on as before
  return told;
}

absl::Status Session::Restore(Clock::time_point deadline) {
  return NoThrow([&]() -> absl::Status {
    v1::ClientMessage message;
    *message.mutable_restore()->mutable_wait() = DurationToWire(
        std::min(absl::FromChrono(deadline - Clock::now()), absl::Hours(1)));
    Call call{.id = 0, .deadline = deadline, .restore = true};
    return Ask(std::move(message), call).status();
  });
}

absl::Status Session::Synchronize() {
  return NoThrow([&]() -> absl::Status {
    // A device once, however many leases it has.
    std::set<
        std::pair<std::shared_ptr<device::Mapper>, std::vector<std::string>>>
        devices;
    for (const std::shared_ptr<MappedLease>& lease : mover_.Leases()) {
      devices.emplace(lease->mapper(), lease->access());
    }
    for (const auto& [mapper, access] : devices) {
      if (absl::Status quiet = mapper->Synchronize(access); !quiet.ok()) {
        return quiet;
      }
    }
    return absl::OkStatus();
  });
}

void Session::SendMoved(v1::ClientMessage answer) { Send(std::move(answer)); }

absl::Status Session::Seal(uint64_t lease_id) {
  if (absl::Status alive = CheckAlive(); !alive.ok()) return alive;
  v1::ClientMessage message;
  message.mutable_seal()->set_lease_id(lease_id);
  return Ask(std::move(message), answer_timeout_).status();
}

absl::Status Session::SetTrimmable(const std::string& device, uint64_t bytes,
                                   const void* heap) {
  if (absl::Status alive = CheckAlive(); !alive.ok()) return alive;
  const auto& devices = welcome_.devices();
  if (device.empty() && devices.size() != 1) {
    return absl::InvalidArgumentError(
        "gmb: the broker has several devices: name one");
  }
  const std::string& uuid = device.empty() ? devices[0].uuid() : device;
  if (std::none_of(devices.begin(), devices.end(),
                   [&](const auto& known) { return known.uuid() == uuid; })) {
    return absl::NotFoundError(absl::StrCat(
        "gmb: the broker did not offer this device when the session began: "
        "device=",
        uuid));
  }
  v1::ClientMessage message;
  {
    ipc::MutexLock lock(&mu_);
    if (!over_.ok()) return over_;
    std::map<const void*, uint64_t>& on_uuid = trimmable_[uuid];
    on_uuid[heap] = bytes;
    if (heap != nullptr && bytes == 0) on_uuid.erase(heap);
    for (const auto& [name, parts] : trimmable_) {
      uint64_t its_bytes = 0;
      for (const auto& [part, part_bytes] : parts) {
        its_bytes += std::min(part_bytes, ~uint64_t{0} - its_bytes);
      }
      v1::SetTrimmable::OnDevice& on =
          *message.mutable_set_trimmable()->add_devices();
      on.set_device(name);
      on.set_bytes(its_bytes);
    }
    table_.AddUnwatched(std::move(message));
  }
  PokeStream();
  return absl::OkStatus();
}

void Session::AnswerTrims() {
  for (const TrimHook::Answer& answer : trim_hook_->TakeAnswers(Clock::now())) {
    v1::ClientMessage message;
    message.mutable_trimmed()->set_trim(answer.trim);
    message.mutable_trimmed()->set_busy(answer.busy);
    Send(std::move(message));
  }
}

}  // namespace gmb::internal
