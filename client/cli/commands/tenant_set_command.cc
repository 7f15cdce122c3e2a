// `gmb tenant set`: makes a tenant, or changes what it may have.
#include "client/cli/commands/tenant_set_command.h"

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/tenant_answer.h"
#include "client/cli/device_name.h"
#include "client/cli/text/number_text.h"
#include "client/cli/text/text.h"
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
  std::optional<absl::Duration> lasts;
  uint64_t if_revision = 0;
  bool undo = false;
  bool dry_run = false;
  bool yes = false;
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
  if (options.lasts) *request.mutable_lasts() = ToProto(*options.lasts);
  request.set_if_revision(options.if_revision);
  request.set_undo(options.undo);
  request.set_dry_run(options.dry_run);
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
  v1::SetTenantRequest request = ToRequest(options);
  GMB_ASSIGN_OR_RETURN(*request.mutable_device(), DeviceUuid(options.device));
  const bool may_take = request.has_limit() || request.undo();
  if (may_take && !options.yes && !options.dry_run)
    GMB_RETURN_IF_ERROR(
        ConfirmTaking(context, &AdminClient::SetTenant, request));
  return CallAndPrint(
      context, &AdminClient::SetTenant, request,
      [&](const v1::SetTenantResponse& answer, const AdminClient&) {
        PrintTenantAnswer(context, options.dry_run, answer);
      });
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
                "Guarantee, limit and weight of this device only [all]")
      ->type_name(kDeviceForm);
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

void AddSafetyOptions(CLI::App* command, SetOptions* options) {
  AddBoundedDurationOption(
      command, "--for", absl::Seconds(1), absl::Hours(24 * 30),
      [options](absl::Duration time) { options->lasts = time; },
      "So long; then what was there before holds again [for good]");
  AddWholeOption(
      command, "--if-revision", 1, std::numeric_limits<int64_t>::max(),
      [options](uint64_t n) { options->if_revision = n; },
      "Only if nothing was changed since this revision (`gmb tenant get` "
      "shows it)");
  command->add_flag("--undo", options->undo,
                    "Give back all values from before the last change");
  command->add_flag("--dry-run", options->dry_run,
                    "Say what would be taken from whom, and change nothing");
  command->add_flag("--yes,-y", options->yes,
                    "Take memory from running processes without asking");
}

// The broker would refuse them too, but a command line that is wrong is to say
// so by its exit code.
void RefuseBesideUndo(const CLI::App& command) {
  const std::set<std::string> beside = {"NAME", "--undo", "--dry-run", "--yes",
                                        "--if-revision"};
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && beside.count(name) == 0) {
      throw CLI::ValidationError(
          "--undo", absl::StrCat("it gives back all former values: leave ",
                                 name, " out"));
    }
  }
}

}  // namespace

void AddTenantSetCommand(CLI::App* tenant, Action* chosen) {
  CLI::App* const command = tenant->add_subcommand(
      "set",
      "Make a tenant, or change what it may have while its processes run");
  const auto options = std::make_shared<SetOptions>();
  AddTextOption(command, "NAME", &options->name,
                "The tenant: 1 to 63 of a-z 0-9 - _ .")
      ->type_name("")
      ->required();
  AddQuotaOptions(command, options.get());
  AddAdmissionOptions(command, options.get());
  AddReclaimOptions(command, options.get());
  AddSafetyOptions(command, options.get());
  command->footer(
      "An option that is left out keeps its value. The answer says applied, or "
      "pending with\n"
      "the bytes still to come when the tenant holds more than it may. A limit "
      "below what its\n"
      "processes hold takes memory from them: that is asked first, or needs "
      "--yes.\n\n"
      "Example: gmb tenant set a --guarantee 25% --limit 60GiB --weight 2");
  command->callback([command, chosen, options] {
    if (options->undo) RefuseBesideUndo(*command);
    *chosen = [options](Context& context) {
      return SetTenant(context, *options);
    };
  });
}

}  // namespace gmb::cli
