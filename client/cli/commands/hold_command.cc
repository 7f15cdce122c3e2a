// `gmb hold`: its options.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/device_name.h"
#include "client/cli/hold/holder.h"
#include "client/cli/interrupt.h"
#include "client/cli/tenant_token.h"
#include "client/cli/text/number_text.h"

namespace gmb::cli {
namespace {

// "0xA5", "165", or "pattern".
absl::Status SetFill(const std::string& text, HoldOptions* options) {
  options->fill.reset();
  if (text == "pattern") return absl::OkStatus();
  const absl::StatusOr<uint8_t> byte = ParseByte(text);
  if (!byte.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(byte.status().message(), ", and not \"pattern\""));
  }
  options->fill = *byte;
  return absl::OkStatus();
}

void AddIdentity(CLI::App* command, HoldOptions* options) {
  AddTextOption(
      command, "--tenant", &options->tenant,
      "Whose client to be: its own socket directory is used if there is one "
      "that this user may enter")
      ->type_name("NAME");
  AddParsedOption(
      command, "--tenant-token-file",
      [options](const std::string& path) {
        const absl::StatusOr<std::string> token = ReadTenantToken(path);
        if (token.ok()) options->tenant_token = *token;
        return token.status();
      },
      "Be the tenant whose token this file holds, on the shared socket")
      ->type_name("FILE");
}

void AddFill(CLI::App* command, HoldOptions* options) {
  AddParsedOption(
      command, "--fill",
      [options](const std::string& text) { return SetFill(text, options); },
      "A byte, or a pattern that depends on the offset and a seed [pattern]")
      ->type_name("BYTE|pattern");
  AddWholeOption(
      command, "--seed", 0, std::numeric_limits<uint64_t>::max(),
      [options](uint64_t seed) { options->seed = seed; },
      "Of the first lease's pattern, one more for each that follows [random, "
      "and said]");
}

void AddContents(CLI::App* command, HoldOptions* options) {
  command
      ->add_option_function<std::string>(
          "--contents",
          [options](const std::string& text) {
            options->contents = text == "discard"    ? Contents::kDiscard
                                : text == "resident" ? Contents::kResident
                                                     : Contents::kPreserve;
          },
          "Whether the contents are kept when the bytes are needed elsewhere "
          "[preserve]")
      ->check(CLI::IsMember({"preserve", "discard", "resident"}))
      ->type_name("preserve|discard|resident");
}

void AddIdleness(CLI::App* command, HoldOptions* options) {
  AddBoundedDurationOption(
      command, "--idle", absl::Milliseconds(1), absl::InfiniteDuration(),
      [options](absl::Duration idle) { options->idle = idle; },
      "Turn the session's gate on and stay idle, so that the memory can be "
      "evicted; after so long, each time, wake up, verify every byte and say "
      "how long it took to be back")
      ->expected(0, 1)
      ->default_str("inf");
  command->add_flag("--seal", options->seal,
                    "Say after filling that nothing more is written: a copy "
                    "of the contents stays true");
}

// After the options that do not go with these.
void AddSharing(CLI::App* command, HoldOptions* options) {
  CLI::Option* const attach =
      AddTextOption(command, "--attach", &options->attach,
                    "Attach to this shared lease of the tenant instead, and "
                    "read it; --fill or --seed say what it has to hold")
          ->type_name("NAME");
  for (const char* const own :
       {"--bytes", "--count", "--device", "--contents", "--seal"}) {
    attach->excludes(command->get_option(own));
  }
  CLI::Option* const share =
      AddTextOption(command, "--share-as", &options->share_as,
                    "Seal it, and let the tenant's other sessions attach to it "
                    "by this name")
          ->type_name("NAME")
          ->excludes(attach)
          ->excludes(command->get_option("--count"));
  command
      ->add_flag("--keep", options->keep,
                 "It stays when nobody is attached any more, until `gmb lease "
                 "drop`")
      ->needs(share);
}

absl::StatusOr<ExitCode> RunHold(Context& context, const HoldOptions& options) {
  const Interrupt interrupt;
  return Hold(context, options, interrupt.token());
}

}  // namespace

void AddHoldCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "hold",
      "Be a client: lease memory, fill it, verify it, hold it, release it");
  const auto options = std::make_shared<HoldOptions>();
  AddIdentity(command, options.get());
  AddBytesOption(command, "--bytes", &options->bytes,
                 "Size of each lease, rounded up by the broker");
  AddWholeOption(
      command, "--count", 1, 1 << 20,
      [options](uint64_t n) { options->count = static_cast<uint32_t>(n); },
      "How many leases [1]");
  AddTextOption(command, "--device", &options->device,
                "May be left out when the broker has one")
      ->type_name("UUID|cuda:N");
  AddContents(command, options.get());
  AddFill(command, options.get());
  AddIdleness(command, options.get());
  AddSharing(command, options.get());
  AddDurationOption(command, "--for", &options->hold,
                    "How long to hold it [until Ctrl-C]");
  AddDurationOption(
      command, "--wait", &options->wait,
      "How long each lease may wait for memory, or to be attached "
      "[not at all], and an idle one to be back [1m at least]");
  command->footer(
      "Ctrl-C and SIGTERM verify and release what is held. While it still "
      "waits\n"
      "for memory they end it with 1. Exit code 4: the memory did not hold "
      "what\n"
      "was written to it.\n\n"
      "Example: gmb hold --tenant a --bytes 2GiB --fill 0xA5 --for 30s --wait "
      "10s");
  command->callback([chosen, command, options] {
    if (command->count("--bytes") == 0 && options->attach.empty())
      throw CLI::RequiredError("--bytes (or --attach)");
    // Not CLI11's excludes: --fill pattern goes with it.
    if (options->fill.has_value() && options->seed.has_value()) {
      throw CLI::ValidationError(
          "--seed",
          "a byte is the same everywhere: leave --seed out, or write "
          "--fill pattern");
    }
    *chosen = [options](Context& context) -> absl::StatusOr<ExitCode> {
      GMB_ASSIGN_OR_RETURN(options->device, DeviceUuid(options->device));
      return RunHold(context, *options);
    };
  });
}

}  // namespace gmb::cli
