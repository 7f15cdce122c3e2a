// `gmb why`: says what stands in a tenant's way.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/tenant_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> Explain(Context& context, const std::string& tenant) {
  v1::ExplainRequest request;
  request.set_tenant(tenant);
  return CallAndPrint(
      context, &AdminClient::Explain, request,
      [&](const v1::ExplainResponse& explanation, const AdminClient&) {
        PrintExplanation(explanation, context.terminal, context.out);
      });
}

}  // namespace

void AddWhyCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("why",
                          "Explain a tenant: what it has, what it waits for, "
                          "what stands in its way");
  const auto tenant = std::make_shared<std::string>();
  AddTextOption(command, "TENANT", tenant.get(), "The tenant")
      ->type_name("")
      ->required();
  command->footer("Example: gmb why a");
  command->callback([chosen, tenant] {
    *chosen = [tenant](Context& context) { return Explain(context, *tenant); };
  });
}

}  // namespace gmb::cli
