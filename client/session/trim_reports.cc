// Before the broker takes memory away it asks for what a program can do
// without; this is the session's side of that talk.
#include "client/session/trim_reports.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::internal {
namespace {

uint64_t Sum(const std::map<const void*, uint64_t>& parts) {
  uint64_t sum = 0;
  for (const auto& [part, bytes] : parts) {
    sum += std::min(bytes, ~uint64_t{0} - sum);
  }
  return sum;
}

}  // namespace

TrimReports::TrimReports(const v1::Welcome* welcome,
                         std::shared_ptr<TrimHook> hook, Calls* calls)
    : welcome_(*welcome), hook_(std::move(hook)), calls_(*calls) {}

absl::Status TrimReports::SetTrimmable(const std::string& device,
                                       uint64_t bytes, const void* heap) {
  GMB_RETURN_IF_ERROR(calls_.CheckAlive());
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
    base::MutexLock lock(&mu_);
    std::map<const void*, uint64_t>& on_uuid = trimmable_[uuid];
    on_uuid[heap] = bytes;
    if (heap != nullptr && bytes == 0) on_uuid.erase(heap);
    for (const auto& [name, parts] : trimmable_) {
      v1::SetTrimmable::OnDevice& on =
          *message.mutable_set_trimmable()->add_devices();
      on.set_device(name);
      on.set_bytes(Sum(parts));
    }
    GMB_RETURN_IF_ERROR(calls_.Queue(std::move(message)));
  }
  calls_.Flush();
  return absl::OkStatus();
}

void TrimReports::Answer() {
  for (const TrimHook::Answer& answer :
       hook_->TakeAnswers(std::chrono::steady_clock::now())) {
    v1::ClientMessage message;
    message.mutable_trimmed()->set_trim(answer.trim);
    message.mutable_trimmed()->set_busy(answer.busy);
    calls_.Send(std::move(message));
  }
}

}  // namespace gmb::internal
