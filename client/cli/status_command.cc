#include <memory>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/cli/call_and_print.h"
#include "client/cli/commands.h"
#include "client/cli/error_report.h"
#include "client/cli/status_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> ShowStatus(Context& context) {
  return CallAndPrint(
      context, &AdminClient::GetStatus, v1::GetStatusRequest(),
      [&](const v1::GetStatusResponse& status, const AdminClient& client) {
        PrintStatus(status, client.socket_dir(), absl::Now(), context.terminal,
                    context.out);
      });
}

absl::StatusOr<ExitCode> ProbeStatus(Context& context) {
  const absl::StatusOr<AdminClient> client =
      AdminClient::Connect(context.socket_dir);
  if (!client.ok()) return ExitCodeOf(client.status());
  const absl::StatusOr<v1::GetStatusResponse> status =
      client->GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return ExitCodeOf(status.status());
  return status->draining() ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace

void AddStatusCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "status", "Show every device pool: who holds its bytes, and warnings");
  const auto quiet = std::make_shared<bool>(false);
  command->add_flag(
      "--quiet,-q", *quiet,
      "Print nothing, for probes: 0 serving, 1 stopping, 3 not reachable");
  command->footer(
      "Example: gmb status --output json | jq '.pools[].granted_bytes'");
  command->callback(
      [chosen, quiet] { *chosen = *quiet ? &ProbeStatus : &ShowStatus; });
}

}  // namespace gmb::cli
