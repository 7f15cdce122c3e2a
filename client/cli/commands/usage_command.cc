// `gmb usage`.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/list_and_print.h"
#include "client/cli/views/usage_view.h"

namespace gmb::cli {
namespace {

struct UsageOptions {
  absl::Duration since = absl::Hours(24 * 7);
  std::string tenant;
};

absl::StatusOr<ExitCode> ListUsage(Context& context,
                                   const UsageOptions& options) {
  v1::ListUsageRequest request;
  request.mutable_since()->set_seconds(
      absl::ToUnixSeconds(absl::Now() - options.since));
  request.set_tenant(options.tenant);
  return ListAndPrint(
      context, &AdminClient::ListUsage, request,
      [&](const v1::ListUsageResponse& usage, Table::Flow* flow) {
        PrintUsage(usage, context.terminal, context.out, flow);
      });
}

}  // namespace

void AddUsageCommand(CLI::App* app, Action* chosen) {
  CLI::App* const usage = app->add_subcommand(
      "usage", "Show what tenants used, day by day, the newest first");
  const auto options = std::make_shared<UsageOptions>();
  AddBoundedDurationOption(
      usage, "--since", absl::Seconds(1), absl::Hours(24 * 3660),
      [options](absl::Duration time) { options->since = time; },
      "From the day so long ago until now, in whole days of UTC [7d]");
  AddTextOption(usage, "--tenant", &options->tenant,
                "Of this tenant only, also of one that is deleted [of all]")
      ->type_name("NAME");
  usage->footer("Example: gmb usage --since 30d --tenant a");
  usage->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return ListUsage(context, *options);
    };
  });
}

}  // namespace gmb::cli
