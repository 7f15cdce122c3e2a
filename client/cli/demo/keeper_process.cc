// The process that has leases while their broker is away.
#include "client/cli/demo/keeper_process.h"

#include <poll.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/demo/find_program.h"
#include "client/cli/demo/log_tail.h"
#include "keeper/link/keeper_link.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kKeeperPatience = absl::Seconds(30);
constexpr int kKeeperRetryMs = 10;

}  // namespace

absl::StatusOr<KeeperProcess> KeeperProcess::Start(const std::string& dir,
                                                   int interrupt_fd) {
  GMB_ASSIGN_OR_RETURN(const std::string program, FindProgram("gmb-keeper"));
  const std::string socket = absl::StrCat(dir, "/keeper/keeper.sock");
  ChildProcess::Options options;
  options.command = {program, "--socket", socket, "--once"};
  options.log_path = absl::StrCat(dir, "/keeper.log");
  GMB_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  const absl::Time deadline = absl::Now() + kKeeperPatience;
  while (true) {
    const auto link = keeper::KeeperLink::Connect(
        {.socket = socket, .role = keeper::Role::kCommand});
    if (link.ok()) return KeeperProcess(std::move(process), socket);
    if (!process.running()) {
      return absl::UnavailableError(absl::StrCat(
          "gmb-keeper ended at its start; ", LogTail(options.log_path)));
    }
    if (absl::Now() > deadline) return link.status();
    pollfd interrupt = {.fd = interrupt_fd, .events = POLLIN, .revents = 0};
    if (poll(&interrupt, 1, kKeeperRetryMs) > 0)
      return absl::CancelledError("interrupted");
  }
}

absl::StatusOr<std::string> KeeperProcess::AwaitEnd(absl::Duration patience) {
  return process_.Wait(absl::Now() + patience);
}

}  // namespace gmb::cli
