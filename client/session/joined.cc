// A second client of a session: gmb.torch in a program under `gmb run`.
#include "client/session/joined.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/no_throw.h"
#include "client/session/socket_dir.h"

namespace gmb::internal {

Joined::Joined(std::shared_ptr<Session> session, const TrimHandler& on_trim)
    : session_(std::move(session)) {
  if (on_trim != nullptr) session_->trims().hook().AddHandler(this, on_trim);
}

Joined::~Joined() {
  session_->trims().hook().RemoveHandler(this);
  NoThrow([this] {
    for (const v1::DeviceInfo& device : session_->welcome().devices()) {
      session_->trims().SetTrimmable(device.uuid(), 0, this).IgnoreError();
    }
    return absl::OkStatus();
  }).IgnoreError();
  LetGo();
}

absl::Status Joined::TurnGateOn() {
  absl::Status alive = session_->CheckAlive();
  if (alive.ok()) LetGo();
  return alive;
}

void Joined::LetGo() {
  const base::MutexLock lock(&mu_);
  if (std::exchange(off_, false)) session_->gate().LeaveForProcess();
}

absl::Status Joined::TurnGateOff(absl::Duration wait) {
  const base::MutexLock lock(&mu_);
  if (off_) return absl::OkStatus();
  absl::Status in = session_->gate().EnterForProcess(wait);
  off_ = in.ok();
  return in;
}

absl::Status Joined::SetTrimmable(const std::string& device, uint64_t bytes) {
  return session_->trims().SetTrimmable(device, bytes, this);
}

bool IsSocketDirOf(const Session& session, const std::string& asked) {
  std::error_code missing;
  return std::filesystem::equivalent(ResolveSocketDir(asked),
                                     session.socket_dir(), missing);
}

}  // namespace gmb::internal
