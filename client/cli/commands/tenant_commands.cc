// `gmb tenant`: shows and deletes tenants; tenant_set_command.cc sets them.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/tenant_set_command.h"
#include "client/cli/text/text.h"
#include "client/cli/views/tenant_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> GetTenant(Context& context, const std::string& name) {
  v1::GetTenantRequest request;
  request.set_name(name);
  return CallAndPrint(context, &AdminClient::GetTenant, request,
                      [&](const v1::Tenant& tenant, const AdminClient&) {
                        PrintTenant(tenant, context.terminal, context.out);
                      });
}

absl::StatusOr<ExitCode> ListNames(Context& context) {
  v1::ListTenantsRequest request;
  request.set_without_fields(true);
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const v1::ListTenantsResponse tenants,
                       client.ListTenants(request));
  Json names = Json::array();
  for (const v1::Tenant& tenant : tenants.tenants()) {
    if (!context.json) context.out << Printable(tenant.name()) << '\n';
    names.push_back(tenant.name());
  }
  if (context.json) context.PrintJson(Json{{"names", names}});
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ListTenants(Context& context) {
  return CallAndPrint(
      context, &AdminClient::ListTenants, v1::ListTenantsRequest(),
      [&](const v1::ListTenantsResponse& tenants, const AdminClient&) {
        PrintTenants(tenants, context.terminal, context.out);
      });
}

struct DeleteOptions {
  std::string name;
  absl::Duration wait;
};

absl::StatusOr<ExitCode> DeleteTenant(Context& context,
                                      const DeleteOptions& options) {
  v1::DeleteTenantRequest request;
  request.set_name(options.name);
  *request.mutable_wait() = ToProto(options.wait);
  // Processes that were killed at its end are waited for as well.
  return CallAndPrint(
      context, &AdminClient::DeleteTenant, request,
      [&](const v1::DeleteTenantResponse&, const AdminClient&) {
        context.out << "deleted tenant " << Printable(options.name) << '\n';
      },
      options.wait + absl::Seconds(5));
}

CLI::Option* AddName(CLI::App* command, std::string* name,
                     const std::string& description) {
  return AddTextOption(command, "NAME", name, description)
      ->type_name("")
      ->required();
}

}  // namespace

void AddTenantCommands(CLI::App* app, Action* chosen) {
  CLI::App* const tenant = app->add_subcommand(
      "tenant", "Set, show or delete tenants and their quotas");
  tenant->require_subcommand(0, 1);
  tenant->footer("Example: gmb tenant list");
  AddTenantSetCommand(tenant, chosen);
  AddTenantResetCommand(tenant, chosen);

  CLI::App* const get =
      tenant->add_subcommand("get", "Show one tenant in full");
  const auto get_name = std::make_shared<std::string>();
  AddName(get, get_name.get(), "The tenant");
  get->footer("Example: gmb tenant get a");
  get->callback([chosen, get_name] {
    *chosen = [get_name](Context& context) {
      return GetTenant(context, *get_name);
    };
  });

  CLI::App* const list =
      tenant->add_subcommand("list", "Show every tenant's quota and use");
  list->alias("ls");
  list->footer(
      "Example: gmb tenant list --output json | jq -r '.tenants[].name'");
  const auto names = std::make_shared<bool>(false);
  list->add_flag("--names", *names, "Only their names, one a line");
  list->callback(
      [chosen, names] { *chosen = *names ? &ListNames : &ListTenants; });

  CLI::App* const remove = tenant->add_subcommand(
      "delete", "Delete a tenant, once its processes have ended");
  const auto options = std::make_shared<DeleteOptions>();
  AddName(remove, &options->name, "The tenant");
  AddBoundedDurationOption(
      remove, "--wait", absl::Milliseconds(1), absl::Hours(1),
      [options](absl::Duration wait) { options->wait = wait; },
      "How long its processes have to end, after being asked to [none: it is "
      "refused while one is connected]");
  remove->footer(
      "With --wait the tenant is granted nothing more, and what is parked is "
      "taken. At the end\n"
      "processes that are left are killed if the tenant may be terminated; "
      "otherwise it stays.\n\n"
      "Example: gmb tenant delete a --wait 30s");
  remove->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return DeleteTenant(context, *options);
    };
  });
}

}  // namespace gmb::cli
