// `gmb status`: the pools, and a probe without output.
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/quota_command.h"
#include "client/cli/views/status_view.h"
#include "client/session/socket_dir.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

// In a tenant's own directory its own quota is all that there is to see.
absl::StatusOr<ExitCode> ShowStatus(Context& context) {
  if (internal::IsTenantDirectory(
          internal::ResolveSocketDir(context.socket_dir))) {
    return ShowOwnQuota(context, "", ClientOptions());
  }
  return CallAndPrint(
      context, &AdminClient::GetStatus, v1::GetStatusRequest(),
      [&](const v1::GetStatusResponse& status, const AdminClient& client) {
        PrintStatus(status, client.socket_dir(), absl::Now(), context.terminal,
                    context.out);
      });
}

// No answer says that the broker is stopping, unless the broker does. One that
// has no room for another operator serves.
ExitCode ProbeCodeOf(const absl::Status& no_answer) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(no_answer);
  if (!detail.has_value()) return ExitCode::kNotReachable;
  switch (detail->reason) {
    case ErrorReason::kDraining:
      return ExitCode::kFailed;
    case ErrorReason::kTooManySessions:
      return ExitCode::kOk;
    default:
      return ExitCode::kNotReachable;
  }
}

absl::StatusOr<ExitCode> ProbeStatus(Context& context) {
  const absl::StatusOr<AdminClient> client =
      AdminClient::Connect(context.socket_dir);
  if (!client.ok()) return ProbeCodeOf(client.status());
  const absl::StatusOr<v1::GetStatusResponse> status =
      client->GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return ProbeCodeOf(status.status());
  return status->draining() ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace

void AddStatusCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "status", "Show every device pool: who holds its bytes, and warnings");
  const auto quiet = std::make_shared<bool>(false);
  command->add_flag(
      "--quiet,-q", *quiet,
      "Print nothing, for probes: 0 serving, 1 stopping, 3 not reachable, also "
      "for a user who is no operator");
  command->footer(
      "Example: gmb status --output json | jq '.pools[].granted_bytes'");
  command->callback(
      [chosen, quiet] { *chosen = *quiet ? &ProbeStatus : &ShowStatus; });
}

}  // namespace gmb::cli
