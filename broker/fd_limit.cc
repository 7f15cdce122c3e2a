// The broker's start: fits handles and sessions into the limit on open files.
#include "broker/fd_limit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

// Sockets, databases, the driver's own files, what gRPC opens, operators'
// sessions, and connections that have not proved whose they are: as many as a
// flood can make (HandleServerOptions, GatewayOptions, GrpcConnections).
constexpr uint64_t kOwnFds = 768;
// The sockets of its directory.
constexpr uint64_t kFdsPerTenant = 2;

}  // namespace

FdPlan FitIntoFdLimit(const FdWishes& wishes, uint64_t limit) {
  // No system opens more files than this; it keeps the sums inside 64 bits.
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const uint64_t sessions_wanted = std::min(wishes.max_sessions, kMost);
  const uint64_t handles_wanted = std::min(wishes.max_handles, kMost);
  const uint64_t per_session =
      std::clamp<uint64_t>(wishes.fds_per_session, 1, 8);
  const uint64_t per_handle = std::clamp<uint64_t>(wishes.fds_per_handle, 1, 4);
  const uint64_t reserved = kOwnFds +
                            std::min(wishes.kept_ready, kMost) * per_handle +
                            std::min(wishes.tenants, kMost) * kFdsPerTenant;
  const uint64_t usable = std::min(limit, kMost * 8) > reserved
                              ? std::min(limit, kMost * 8) - reserved
                              : 0;

  FdPlan plan;
  uint64_t left = usable;
  if (sessions_wanted * per_session + handles_wanted * per_handle <= usable) {
    plan.max_sessions = sessions_wanted;
  } else {
    plan.max_sessions = std::clamp<uint64_t>(
        usable / 2 / per_session, 1, std::max<uint64_t>(sessions_wanted, 1));
  }
  left -= std::min(left, plan.max_sessions * per_session);
  plan.max_handles =
      std::max<uint64_t>(1, std::min(handles_wanted, left / per_handle));
  if (plan.max_handles < handles_wanted ||
      plan.max_sessions < sessions_wanted) {
    plan.warning = absl::StrCat(
        "the limit on open files is too low: ", plan.max_handles, " of ",
        handles_wanted, " handles and ", plan.max_sessions, " of ",
        sessions_wanted, " sessions are served: raise it to at least ",
        reserved + sessions_wanted * per_session + handles_wanted * per_handle,
        " (systemd: LimitNOFILE=, shell: ulimit -Hn, container: --ulimit "
        "nofile=), or lower max_handles or "
        "max_sessions");
  }
  return plan;
}

}  // namespace gmb::broker
