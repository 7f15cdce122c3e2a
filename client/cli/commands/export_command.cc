// `gmb export`: what is in force, as a file that gmbd reads.
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/export_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> Export(Context& context) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const v1::ListTenantsResponse tenants,
                       client.ListTenants(v1::ListTenantsRequest()));
  const std::string text = ExportText(tenants);
  if (context.json) {
    context.PrintJson(Json{{"yaml", text}});
  } else {
    context.out << text;
  }
  return ExitCode::kOk;
}

}  // namespace

void AddExportCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "export", "Print the tenants that are in force as YAML that gmbd reads");
  command->footer(
      "A value that was set for a time is printed as if it were for good. "
      "Tokens are not printed.\n\nExample: gmb export > tenants.yaml");
  command->callback([chosen] { *chosen = &Export; });
}

}  // namespace gmb::cli
