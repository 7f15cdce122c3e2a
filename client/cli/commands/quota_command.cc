// `gmb quota`: what a tenant has, for its own users.
#include "client/cli/commands/quota_command.h"

#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/own_quota.h"
#include "client/cli/tenant_token.h"
#include "client/cli/views/quota_view.h"

namespace gmb::cli {
namespace {

struct QuotaOptions {
  std::string tenant;
  std::string token_file;
};

absl::StatusOr<ExitCode> Quota(const Context& context,
                               const QuotaOptions& options) {
  ClientOptions client;
  if (!options.token_file.empty()) {
    GMB_ASSIGN_OR_RETURN(client.tenant_token,
                         ReadTenantToken(options.token_file));
  }
  return ShowOwnQuota(context, options.tenant, std::move(client));
}

}  // namespace

absl::StatusOr<ExitCode> ShowOwnQuota(const Context& context,
                                      const std::string& tenant,
                                      ClientOptions options) {
  GMB_ASSIGN_OR_RETURN(
      const v1::QuotaReport report,
      AskOwnQuota(context.socket_dir, tenant, std::move(options)));
  if (context.json) {
    context.PrintJson(ToJson(report));
  } else {
    PrintQuota(report, context.terminal, context.out);
  }
  return ExitCode::kOk;
}

void AddQuotaCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "quota", "Show what your own tenant has, and what stands in its way");
  const auto options = std::make_shared<QuotaOptions>();
  AddTextOption(command, "--tenant", &options->tenant,
                "Which one: its own socket directory is used if there is one "
                "that this user may enter [the one that the socket tells]")
      ->type_name("NAME");
  AddTextOption(command, "--tenant-token-file", &options->token_file,
                "Be the tenant whose token this file holds, on the shared "
                "socket")
      ->type_name("FILE");
  command->footer(
      "For everybody: it needs no operator's rights. It is a session of the "
      "tenant for a moment.\n\n"
      "Example: gmb quota --tenant a");
  command->callback([chosen, options] {
    *chosen = [options](Context& context) { return Quota(context, *options); };
  });
}

}  // namespace gmb::cli
