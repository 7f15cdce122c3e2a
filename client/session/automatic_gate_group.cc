// A program turns out to be one of several ranks: it joins their group.
#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/session/automatic_gate.h"
#include "client/session/gate_switch.h"
#include "gmb/error.h"

namespace gmb::internal {
namespace {

// So long the program waits until it is in.
constexpr auto kJoinWithin = std::chrono::seconds(10);

// Guarantees of others rest on memory that would be hard then.
bool IsOvercommitted(const absl::Status& refused) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(refused);
  return detail.has_value() && detail->reason == ErrorReason::kOvercommitted;
}

}  // namespace

// With its gate off it is in the group from the start, and keeps it from being
// lent.
absl::Status AutomaticGate::Join(const std::string& group) {
  if (group == group_) return absl::OkStatus();
  if (!group_.empty()) {
    return absl::FailedPreconditionError(
        "it is in another group, or in several communicators: name one for all "
        "of them (gmb run --group)");
  }
  if (on_) GMB_RETURN_IF_ERROR(TurnOff());
  return session_->gate_switch().JoinGroup(group);
}

// False: it is tried again. Not in the middle of what the idler does, for which
// calls may wait; nor under a pause, whose end the gate waits for to be off.
bool AutomaticGate::JoinWanted() {
  Wanted wanted;
  {
    base::MutexLock lock(&mu_);
    if (!wanted_.has_value()) return true;
    wanted = *wanted_;
  }
  idler_.StopPolling(Clock::now());
  const bool at_rest = idler_.at() == Idler::At::kRest;
  if (never().empty() && (!at_rest || (on_ && PausedAndThere()))) return false;
  const absl::Status joined = Join(wanted.group);
  const bool cannot_yet = on_ && group_.empty() && !IsOvercommitted(joined);
  if (!joined.ok() && cannot_yet) return false;
  if (!joined.ok()) {
    NeverPark(absl::StrCat("it is one of several ranks of a communicator: ",
                           joined.message()));
  } else if (group_.empty()) {
    group_ = wanted.group;
    group_members_ = wanted.members;
  }
  base::MutexLock lock(&mu_);
  if (wanted_.has_value() && wanted_->group == wanted.group) wanted_.reset();
  changed_.NotifyAll();
  return true;
}

// --- The program's thread.

void AutomaticGate::JoinGroup(const std::string& group, uint32_t members) {
  {
    const Clock::time_point until = Clock::now() + kJoinWithin;
    base::MutexLock lock(&mu_);
    if (!never_.empty() || stopped_ || bias_.over()) return;
    wanted_ = {.group = group, .members = members};
    woken_ = true;
    changed_.NotifyAll();
    while (wanted_.has_value() && !stopped_ &&
           changed_.WaitUntil(&mu_, until)) {
    }
    if (!wanted_.has_value() || stopped_) return;
    wanted_.reset();
  }
  NeverPark(
      "it is one of several ranks of a communicator, and the broker does not "
      "say that it is in their group");
}

}  // namespace gmb::internal
