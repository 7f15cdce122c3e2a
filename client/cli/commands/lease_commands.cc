// `gmb lease`: lists leases, and drops shared ones.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/list_and_print.h"
#include "client/cli/views/list_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> ListLeases(Context& context,
                                    const std::string& tenant) {
  v1::ListLeasesRequest request;
  request.set_tenant(tenant);
  return ListAndPrint(
      context, &AdminClient::ListLeases, request,
      [&](const v1::ListLeasesResponse& leases, Table::Flow* flow) {
        PrintLeases(leases, absl::Now(), context.terminal, context.out, flow);
      });
}

struct DropOptions {
  std::string tenant;
  std::string name;
};

absl::StatusOr<ExitCode> DropLease(Context& context,
                                   const DropOptions& options) {
  v1::DropLeaseRequest request;
  request.set_tenant(options.tenant);
  request.set_name(options.name);
  return CallAndPrint(
      context, &AdminClient::DropLease, request,
      [&](const v1::DropLeaseResponse& dropped, const AdminClient&) {
        context.out << "dropped " << options.name << " of tenant "
                    << options.tenant << ": "
                    << (dropped.attached() == 0
                            ? std::string("no session had it, so it is gone")
                            : absl::StrCat("sessions that have it still: ",
                                           dropped.attached(),
                                           "; it ends with the last"))
                    << "\n";
      });
}

void AddDrop(CLI::App* lease, Action* chosen) {
  CLI::App* const drop = lease->add_subcommand(
      "drop",
      "Free the name of a shared lease: no further session can attach to it");
  const auto options = std::make_shared<DropOptions>();
  AddTextOption(drop, "--tenant", &options->tenant, "Whose it is")
      ->type_name("NAME")
      ->required();
  AddTextOption(drop, "NAME", &options->name, "The name it is shared under")
      ->type_name("")
      ->required();
  drop->footer(
      "The lease ends when the last attached session releases it; a kept one "
      "without a session\n"
      "ends at once.\n\n"
      "Example: gmb lease drop --tenant a llm-7b");
  drop->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return DropLease(context, *options);
    };
  });
}

}  // namespace

void AddLeaseCommands(CLI::App* app, Action* chosen) {
  CLI::App* const lease =
      app->add_subcommand("lease", "Show the memory that is leased");
  lease->require_subcommand(0, 1);
  lease->footer("Example: gmb lease list");
  CLI::App* const list = lease->add_subcommand(
      "list", "One line a lease: whose, how large, since when");
  const auto tenant = std::make_shared<std::string>();
  AddTextOption(list, "--tenant", tenant.get(), "Of this tenant only")
      ->type_name("NAME");
  list->alias("ls");
  list->footer(
      "Example: gmb lease list --tenant a --output json | jq "
      "'[.leases[].bytes] | add'");
  list->callback([chosen, tenant] {
    *chosen = [tenant](Context& context) {
      return ListLeases(context, *tenant);
    };
  });
  AddDrop(lease, chosen);
}

}  // namespace gmb::cli
