// `gmb status`: the pools, and a probe without output.
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/quota_command.h"
#include "client/cli/own_quota.h"
#include "client/cli/views/status_view.h"
#include "client/cli/views/tenant_summary.h"
#include "client/session/socket_dir.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

// Where its own quota is all that there is to see.
bool InTenantDirectory(const Context& context) {
  return internal::IsTenantDirectory(
      internal::ResolveSocketDir(context.socket_dir));
}

absl::StatusOr<ExitCode> ShowStatus(Context& context) {
  if (InTenantDirectory(context))
    return ShowOwnQuota(context, "", ClientOptions());
  return CallAndPrint(
      context, &AdminClient::GetStatus, v1::GetStatusRequest(),
      [&](const v1::GetStatusResponse& status, const AdminClient& client) {
        PrintStatus(status, client.socket_dir(), absl::Now(), context.terminal,
                    context.out);
        v1::ListTenantsRequest request;
        request.set_without_fields(true);
        // The pools were shown; what is wrong by now, the next call says.
        if (const auto tenants = client.ListTenants(request); tenants.ok())
          PrintTenantSummary(*tenants, context.terminal, context.out);
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
  if (InTenantDirectory(context)) {
    const absl::Status asked =
        AskOwnQuota(context.socket_dir, "", ClientOptions()).status();
    return asked.ok() ? ExitCode::kOk : ProbeCodeOf(asked);
  }
  const absl::StatusOr<AdminClient> client =
      AdminClient::Connect(context.socket_dir);
  if (!client.ok()) return ProbeCodeOf(client.status());
  const absl::StatusOr<v1::GetStatusResponse> status =
      client->GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return ProbeCodeOf(status.status());
  return status->draining() ? ExitCode::kFailed : ExitCode::kOk;
}

bool Serves(Context& context) {
  const absl::StatusOr<ExitCode> code = ProbeStatus(context);
  return code.ok() && *code == ExitCode::kOk;
}

// Looks again and again until the broker serves, or the time is over; then as
// without waiting.
void AwaitBroker(Context& context, absl::Duration wait) {
  constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
  const absl::Time deadline = absl::Now() + wait;
  while (!Serves(context) && absl::Now() < deadline)
    absl::SleepFor(kBetweenLooks);
}

}  // namespace

void AddStatusCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "status", "Show every device pool, who holds its bytes, and warnings");
  const auto quiet = std::make_shared<bool>(false);
  command->add_flag(
      "--quiet,-q", *quiet,
      "Print nothing, for probes: 0 serving, 1 stopping, 3 not reachable, also "
      "for a user who is no operator");
  command->footer(
      "Example: gmb status --output json | jq '.pools[].granted_bytes'");
  const auto wait = std::make_shared<absl::Duration>();
  AddBoundedDurationOption(
      command, "--wait", absl::Milliseconds(1), absl::Hours(1),
      [wait](absl::Duration time) { *wait = time; },
      "Until the broker serves, so long at most [not at all]");
  command->callback([chosen, quiet, wait] {
    *chosen = [quiet = *quiet, wait = *wait](Context& context) {
      if (wait > absl::ZeroDuration()) AwaitBroker(context, wait);
      return quiet ? ProbeStatus(context) : ShowStatus(context);
    };
  });
}

}  // namespace gmb::cli
