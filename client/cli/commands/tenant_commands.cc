// `gmb tenant`: sets, shows and deletes tenants.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/text/number_text.h"
#include "client/cli/text/text.h"
#include "client/cli/views/tenant_view.h"
#include "proto/tenant_bounds.h"

namespace gmb::cli {
namespace {

struct SetOptions {
  std::string name;
  std::string device;
  std::optional<v1::Amount> guarantee;
  std::optional<v1::Amount> limit;
  std::optional<double> weight;
  std::optional<uint32_t> max_handles;
  std::optional<uint32_t> max_sessions;
  std::optional<v1::Uids> uids;
  std::optional<bool> may_terminate;
  std::optional<absl::Duration> min_residency;
  std::optional<absl::Duration> pause_grace;
  std::optional<v1::Amount> host_limit;
};

v1::SetTenantRequest ToRequest(const SetOptions& options) {
  v1::SetTenantRequest request;
  request.set_name(options.name);
  request.set_device(options.device);
  if (options.guarantee) *request.mutable_guarantee() = *options.guarantee;
  if (options.limit) *request.mutable_limit() = *options.limit;
  if (options.weight) request.set_weight(*options.weight);
  if (options.max_handles) request.set_max_handles(*options.max_handles);
  if (options.max_sessions) request.set_max_sessions(*options.max_sessions);
  if (options.uids) *request.mutable_uids() = *options.uids;
  if (options.may_terminate) request.set_may_terminate(*options.may_terminate);
  if (options.min_residency)
    *request.mutable_min_residency() = ToProto(*options.min_residency);
  if (options.pause_grace)
    *request.mutable_pause_grace() = ToProto(*options.pause_grace);
  if (options.host_limit) *request.mutable_host_limit() = *options.host_limit;
  return request;
}

// "1000", "1000,1001", or "none" for an empty list. CLI11 puts a newline
// between the words of an option that is given several times.
absl::StatusOr<v1::Uids> ParseUids(const std::string& text) {
  // The largest 32-bit number is no user's: the kernel uses it for "none".
  constexpr uint64_t kLargestUid = std::numeric_limits<uint32_t>::max() - 1;
  v1::Uids uids;
  if (text == "none") return uids;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(",\n"))) {
    const absl::StatusOr<uint64_t> uid = ParseWhole(word, 0, kLargestUid);
    if (!uid.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("write uids with commas between them, such as "
                       "1000,1001, or none alone to take all away: ",
                       uid.status().message()));
    }
    uids.add_uid(static_cast<uint32_t>(*uid));
  }
  return uids;
}

absl::StatusOr<ExitCode> SetTenant(Context& context,
                                   const SetOptions& options) {
  return CallAndPrint(
      context, &AdminClient::SetTenant, ToRequest(options),
      [&](const v1::SetTenantResponse& answer, const AdminClient&) {
        // A name that was misspelt is seen by it.
        if (answer.made()) {
          context.out << "made tenant " << Printable(answer.tenant().name())
                      << '\n';
        }
        PrintTenant(answer.tenant(), context.terminal, context.out);
        for (const v1::Change& change : answer.changes()) {
          PrintChange(change, context.terminal, context.out);
        }
      });
}

absl::StatusOr<ExitCode> GetTenant(Context& context, const std::string& name) {
  v1::GetTenantRequest request;
  request.set_name(name);
  return CallAndPrint(context, &AdminClient::GetTenant, request,
                      [&](const v1::Tenant& tenant, const AdminClient&) {
                        PrintTenant(tenant, context.terminal, context.out);
                      });
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

void AddQuotaOptions(CLI::App* command, SetOptions* options) {
  AddAmountOption(
      command, "--guarantee", &options->guarantee,
      "Always obtainable; the guarantees of all tenants fit into the pool");
  AddAmountOption(command, "--limit", &options->limit,
                  "Never exceeded by new leases");
  AddParsedOption(
      command, "--weight",
      [options](const std::string& text) {
        const absl::StatusOr<double> weight = ParseWeight(text);
        if (weight.ok()) options->weight = *weight;
        return weight.status();
      },
      "Share of the surplus when requests wait, above 0 (a new tenant: 1)")
      ->type_name("X");
  AddTextOption(command, "--device", &options->device,
                "Guarantee, limit and weight of the device with this UUID "
                "only [of every device]")
      ->type_name("UUID");
}

void AddAdmissionOptions(CLI::App* command, SetOptions* options) {
  AddWholeOption(
      command, "--max-handles", 1, proto::kMostHandles,
      [options](uint64_t n) { options->max_handles = n; },
      "Slabs it may hold at once");
  AddWholeOption(
      command, "--max-sessions", 1, proto::kMostSessions,
      [options](uint64_t n) { options->max_sessions = n; },
      "Processes it may have connected");
  AddParsedOption(
      command, "--uid",
      [options](const std::string& text) {
        const absl::StatusOr<v1::Uids> uids = ParseUids(text);
        if (uids.ok()) options->uids = *uids;
        return uids.status();
      },
      "Processes of these users are this tenant on the shared socket, in place "
      "of those set before; none: of no user")
      ->type_name("UID,...|none")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
}

void AddReclaimOptions(CLI::App* command, SetOptions* options) {
  command
      ->add_option_function<std::string>(
          "--may-terminate",
          [options](const std::string& text) {
            options->may_terminate = text == "yes";
          },
          "Whether a process that does not give back what it was told to may "
          "be killed (a new tenant: no)")
      ->check(CLI::IsMember({"yes", "no"}))
      ->type_name("yes|no");
  AddBoundedDurationOption(
      command, "--min-residency", absl::ZeroDuration(), absl::Hours(1),
      [options](absl::Duration time) { options->min_residency = time; },
      "How long its leases stay on the device at least (a new tenant: 0s)");
  AddBoundedDurationOption(
      command, "--pause-grace", absl::ZeroDuration(), absl::Hours(1),
      [options](absl::Duration time) { options->pause_grace = time; },
      "How long a pause waits for its last scope (a new tenant: 5s)");
  AddAmountOption(
      command, "--host-limit", &options->host_limit,
      "Of the host pool, at most; a share is of the host pool (a new tenant: "
      "100%)");
}

void AddSet(CLI::App* tenant, Action* chosen) {
  CLI::App* const command = tenant->add_subcommand(
      "set",
      "Make a tenant, or change what it may have while its processes run");
  const auto options = std::make_shared<SetOptions>();
  AddName(command, &options->name, "The tenant: 1 to 63 of a-z 0-9 - _ .");
  AddQuotaOptions(command, options.get());
  AddAdmissionOptions(command, options.get());
  AddReclaimOptions(command, options.get());
  command->footer(
      "An option that is left out keeps its value. The answer says applied, or "
      "pending with\n"
      "the bytes still to come when the tenant holds more than it may.\n\n"
      "Example: gmb tenant set a --guarantee 25% --limit 60GiB --weight 2");
  command->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return SetTenant(context, *options);
    };
  });
}

}  // namespace

void AddTenantCommands(CLI::App* app, Action* chosen) {
  CLI::App* const tenant = app->add_subcommand(
      "tenant", "Set, show or delete tenants and their quotas");
  tenant->require_subcommand(0, 1);
  tenant->footer("Example: gmb tenant list");
  AddSet(tenant, chosen);

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
  list->footer(
      "Example: gmb tenant list --output json | jq -r '.tenants[].name'");
  list->callback([chosen] { *chosen = &ListTenants; });

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
