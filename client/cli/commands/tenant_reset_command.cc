// `gmb tenant reset`: gives a tenant's fields back to the configuration file.
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/tenant_answer.h"
#include "client/cli/commands/tenant_set_command.h"
#include "client/cli/device_name.h"

namespace gmb::cli {
namespace {

struct ResetOptions {
  v1::ResetTenantRequest request;
  bool yes = false;
};

absl::StatusOr<ExitCode> ResetTenant(Context& context,
                                     const ResetOptions& options) {
  v1::ResetTenantRequest request = options.request;
  GMB_ASSIGN_OR_RETURN(*request.mutable_device(),
                       DeviceUuid(options.request.device()));
  if (!options.yes && !request.dry_run()) {
    GMB_RETURN_IF_ERROR(
        ConfirmTaking(context, &AdminClient::ResetTenant, request));
  }
  return CallAndPrint(
      context, &AdminClient::ResetTenant, request,
      [&](const v1::SetTenantResponse& answer, const AdminClient&) {
        PrintTenantAnswer(context, request.dry_run(), answer);
      });
}

}  // namespace

void AddTenantResetCommand(CLI::App* tenant, Action* chosen) {
  CLI::App* const command = tenant->add_subcommand(
      "reset", "Give a tenant's fields back to the configuration file");
  const auto options = std::make_shared<ResetOptions>();
  const auto name = std::make_shared<std::string>();
  const auto device = std::make_shared<std::string>();
  AddTextOption(command, "NAME", name.get(), "The tenant")
      ->type_name("")
      ->required();
  for (const auto& [flag, field] : {std::pair{"--guarantee", "guarantee"},
                                    {"--limit", "limit"},
                                    {"--weight", "weight"},
                                    {"--max-handles", "max_handles"},
                                    {"--max-sessions", "max_sessions"},
                                    {"--uid", "uids"},
                                    {"--may-terminate", "may_terminate"},
                                    {"--min-residency", "min_residency"},
                                    {"--pause-grace", "pause_grace"},
                                    {"--host-limit", "host_limit"}}) {
    command->add_flag_function(
        flag,
        [options, field = field](int64_t) {
          options->request.add_fields(field);
        },
        "This field, and others that are named [all]");
  }
  AddTextOption(command, "--device", device.get(),
                "Guarantee, limit and weight of this device only [all]")
      ->type_name(kDeviceForm);
  AddWholeOption(
      command, "--if-revision", 1, std::numeric_limits<int64_t>::max(),
      [options](uint64_t n) { options->request.set_if_revision(n); },
      "Only if nothing was changed since this revision");
  command->add_flag_function(
      "--dry-run", [options](int64_t) { options->request.set_dry_run(true); },
      "Say what would be taken from whom, and change nothing");
  command->add_flag("--yes,-y", options->yes,
                    "Take memory from running processes without asking");
  command->footer(
      "What operators wrote into the fields is taken away. `gmb tenant get` "
      "shows who wrote what.\n\n"
      "Example: gmb tenant reset a --limit");
  command->callback([chosen, options, name, device] {
    options->request.set_name(*name);
    options->request.set_device(*device);
    *chosen = [options](Context& context) {
      return ResetTenant(context, *options);
    };
  });
}

}  // namespace gmb::cli
