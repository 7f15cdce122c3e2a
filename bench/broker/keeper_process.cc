// The process that has leases while their broker is away.
#include "bench/broker/keeper_process.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/installed.h"
#include "keeper/link/keeper_link.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kStartPatience = absl::Seconds(30);
constexpr absl::Duration kRetry = absl::Milliseconds(10);

}  // namespace

absl::StatusOr<KeeperProcess> KeeperProcess::Start(const std::string& dir) {
  const std::string program = cli::FindInstalled("gmb-keeper", {"."});
  if (program.empty())
    return absl::NotFoundError("there is no gmb-keeper beside this program");
  const std::string socket = absl::StrCat(dir, "/keeper/keeper.sock");
  cli::ChildProcess::Options options;
  options.command = {program, "--socket", socket};
  options.log_path = absl::StrCat(dir, "/keeper.log");
  absl::StatusOr<cli::ChildProcess> process = cli::ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  const absl::Time deadline = absl::Now() + kStartPatience;
  for (;;) {
    const auto link = keeper::KeeperLink::Connect(
        {.socket = socket, .role = keeper::Role::kCommand});
    if (link.ok()) return KeeperProcess(*std::move(process), socket);
    if (!process->running() || absl::Now() > deadline) return link.status();
    absl::SleepFor(kRetry);
  }
}

}  // namespace gmb::bench
