// `gmb metrics`: what Prometheus would scrape, once.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/atomic_file.h"
#include "client/cli/commands/commands.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> PrintMetrics(Context& context,
                                      const std::string& file) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const std::string text, client.GetMetrics());
  if (!file.empty()) {
    GMB_RETURN_IF_ERROR(ReplaceFile(file, text));
  } else if (context.json) {
    context.PrintJson(Json{{"text", text}});
  } else {
    context.out << text;
  }
  return ExitCode::kOk;
}

}  // namespace

void AddMetricsCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "metrics", "Print the broker's metrics in Prometheus's text format");
  const auto file = std::make_shared<std::string>();
  command
      ->add_option("--file", *file,
                   "Write them there instead, the old file replaced at once: "
                   "for node_exporter's textfile collector")
      ->type_name("FILE");
  command->footer(
      "gmbd --http serves the same to Prometheus itself: docs/metrics.md.\n\n"
      "Example: gmb metrics --file /var/lib/prometheus/node-exporter/gmb.prom");
  command->callback([chosen, file] {
    *chosen = [file](Context& context) { return PrintMetrics(context, *file); };
  });
}

}  // namespace gmb::cli
