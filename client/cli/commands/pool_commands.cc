// `gmb pool`: resizes a pool, drains it, and takes it back into service.
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/each_device.h"
#include "client/cli/device_name.h"
#include "client/cli/text/text.h"
#include "client/cli/views/tenant_view.h"

namespace gmb::cli {
namespace {

struct ResizeOptions {
  std::string device;
  std::optional<v1::Amount> size;
};

absl::StatusOr<ExitCode> Resize(Context& context,
                                const ResizeOptions& options) {
  return OnEachDevice(
      context, options.device,
      [&](const AdminClient& client,
          const std::string& uuid) -> absl::StatusOr<Json> {
        v1::ResizePoolRequest request;
        request.set_device(uuid);
        *request.mutable_size() = options.size.value_or(v1::Amount());
        GMB_ASSIGN_OR_RETURN(const v1::ResizePoolResponse answer,
                             client.ResizePool(request));
        if (!context.json)
          PrintChange(answer.change(), context.terminal, context.out);
        return ToJson(answer);
      });
}

absl::StatusOr<ExitCode> Drain(Context& context, const std::string& device,
                               bool draining) {
  return OnEachDevice(context, device,
                      [&](const AdminClient& client,
                          const std::string& uuid) -> absl::StatusOr<Json> {
                        v1::DrainPoolRequest request;
                        request.set_device(uuid);
                        request.set_draining(draining);
                        GMB_ASSIGN_OR_RETURN(const v1::DrainPoolResponse answer,
                                             client.DrainPool(request));
                        if (!context.json) {
                          if (device == "all") context.out << uuid << ": ";
                          context.out << (draining ? "draining" : "in service")
                                      << ": " << SizeText(answer.leased_bytes())
                                      << " leased\n";
                        }
                        return ToJson(answer);
                      });
}

void AddDrain(CLI::App* pool, Action* chosen, bool draining) {
  CLI::App* const command =
      draining ? pool->add_subcommand(
                     "drain", "Grant nothing more; what is leased stays")
               : pool->add_subcommand("undrain",
                                      "Take a drained pool back into service");
  const auto device = std::make_shared<std::string>();
  AddTextOption(command, "--device", device.get(),
                "Which one; may be left out when there is one pool")
      ->type_name(kDeviceForm);
  command->footer(draining ? "Example: gmb pool drain --device GPU-8f5c..."
                           : "Example: gmb pool undrain --device GPU-8f5c...");
  command->callback([chosen, device, draining] {
    *chosen = [device, draining](Context& context) {
      return Drain(context, *device, draining);
    };
  });
}

}  // namespace

void AddPoolCommands(CLI::App* app, Action* chosen) {
  CLI::App* const pool = app->add_subcommand(
      "pool", "Resize a device pool, or take it out of service");
  pool->require_subcommand(0, 1);
  pool->footer("Example: gmb pool resize 90%");

  CLI::App* const resize =
      pool->add_subcommand("resize", "Change how much device memory is shared");
  const auto options = std::make_shared<ResizeOptions>();
  AddAmountOption(resize, "SIZE", &options->size,
                  "New size; a share is of what was free at the broker's start "
                  "less the headroom")
      ->type_name("")
      ->required();
  AddTextOption(resize, "--device", &options->device,
                "Which one; may be left out when there is one pool")
      ->type_name(kDeviceForm);
  resize->footer(
      "A pool that is to shrink below what is leased does so as leases are "
      "released.\n\n"
      "Example: gmb pool resize 120GiB");
  resize->callback([chosen, options] {
    *chosen = [options](Context& context) { return Resize(context, *options); };
  });
  AddDrain(pool, chosen, true);
  AddDrain(pool, chosen, false);
}

}  // namespace gmb::cli
