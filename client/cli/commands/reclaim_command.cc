// `gmb reclaim`: takes memory back from a tenant by hand.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/each_device.h"
#include "client/cli/device_name.h"
#include "client/cli/text/text.h"
#include "client/cli/views/reclaim_view.h"
#include "proto/amount_text.h"

namespace gmb::cli {
namespace {

struct ReclaimOptions {
  std::string tenant;
  std::string device;
  uint64_t bytes = 0;
  v1::ReclaimRequest::Step to = v1::ReclaimRequest::EVICT;
  absl::Duration wait = absl::Seconds(10);
};

absl::StatusOr<ExitCode> Reclaim(Context& context,
                                 const ReclaimOptions& options) {
  uint64_t lacking = 0;
  const absl::StatusOr<ExitCode> done = OnEachDevice(
      context, options.device,
      [&](const AdminClient& client,
          const std::string& uuid) -> absl::StatusOr<Json> {
        v1::ReclaimRequest request;
        request.set_tenant(options.tenant);
        request.set_device(uuid);
        request.set_bytes(options.bytes);
        request.set_to(options.to);
        *request.mutable_wait() = ToProto(options.wait);
        GMB_ASSIGN_OR_RETURN(const v1::ReclaimResponse answer,
                             client.Reclaim(request, options.wait));
        if (!context.json)
          PrintReclaimed(request, answer, context.terminal, context.out);
        lacking += answer.lacking_bytes();
        return ToJson(answer);
      });
  return done.ok() && lacking > 0 ? ExitCode::kFailed : done;
}

// 0 would mean all that can be had, which a script's empty sum must not.
absl::Status ParseSomeBytes(const std::string& text, uint64_t* bytes) {
  GMB_ASSIGN_OR_RETURN(const uint64_t parsed, proto::ParseBytes(text));
  if (parsed == 0) {
    return absl::InvalidArgumentError(
        "write a size above 0, or leave the option out for all that can be "
        "had; got \"" +
        text + "\"");
  }
  *bytes = parsed;
  return absl::OkStatus();
}

void AddLimits(CLI::App* command, ReclaimOptions* options) {
  AddTextOption(command, "--device", &options->device,
                "May be left out when the broker has one")
      ->type_name(kDeviceForm);
  AddParsedOption(
      command, "--bytes",
      [options](const std::string& text) {
        return ParseSomeBytes(text, &options->bytes);
      },
      "How much is wanted back [as much as can be had]")
      ->type_name("SIZE");
  command
      ->add_option_function<std::string>(
          "--to",
          [options](const std::string& text) {
            options->to = text == "trim" ? v1::ReclaimRequest::TRIM
                                         : v1::ReclaimRequest::EVICT;
          },
          "The last step that is taken: trim only asks the program, evict also "
          "takes what is parked [evict]")
      ->check(CLI::IsMember({"trim", "evict"}))
      ->type_name("trim|evict");
  AddBoundedDurationOption(
      command, "--wait", absl::Milliseconds(1), absl::Hours(1),
      [options](absl::Duration wait) { options->wait = wait; },
      "How long it may take [10s]");
}

}  // namespace

void AddReclaimCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "reclaim",
      "Take memory back from a tenant, as far as its programs allow");
  const auto options = std::make_shared<ReclaimOptions>();
  AddTextOption(command, "TENANT", &options->tenant, "The tenant")
      ->type_name("")
      ->required();
  AddLimits(command, options.get());
  command->footer(
      "Evicted contents are kept, unless their program said that they may be "
      "lost, and come back\n"
      "when the program wants them. Exit code 1: not all of --bytes came back; "
      "the output says why.\n\n"
      "Example: gmb reclaim a --bytes 8GiB --wait 30s");
  command->callback([chosen, options] {
    if (options->device == "all" && options->bytes > 0) {
      throw CLI::ValidationError(
          "--bytes", "is of one device: name it, or leave --bytes out");
    }
    *chosen = [options](Context& context) {
      return Reclaim(context, *options);
    };
  });
}

}  // namespace gmb::cli
