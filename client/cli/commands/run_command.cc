// `gmb run`: its options.
#include <algorithm>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/launcher.h"

namespace gmb::cli {
namespace {

constexpr char kRunFooter[] =
    R"(The program's cudaMalloc and cudaFree become leases and releases, and so does what it
makes by cuMemCreate; cudaMemGetInfo answers with the tenant's budget: PyTorch, JAX,
CuPy, ONNX Runtime and others run unchanged (docs/frameworks.md). Not served, and
shown by `gmb status` as taken past the broker: managed memory, arrays, allocations
inside captures. It is a convenience, not a boundary: what holds the quota is that
the broker owns the memory.

While the program is idle its memory may serve others, if the broker keeps contents
(gmbd --host-pool): it is copied there, and comes back at the same addresses when the
program next touches it, which waits meanwhile. `gmb session list` shows who is parked.

When an allocation fails, `gmb why TENANT` says what the tenant has and lacks, and
with --verbose the program says each refusal on standard error.

The program takes the place of gmb: signals, standard streams and exit code are its
own. Before that: 1 refused, 2 wrong usage, 3 no broker answers, 126 the program
cannot be started, 127 there is no such program; with --output json its errors, and
the warning of --fallback native, are JSON.

Example: gmb run --tenant a -- python server.py
         gmb run --tenant a --wait 10s --fallback native -- ./server --port 80)";

// Whether, and when, the memory serves others.
void AddParkOptions(CLI::App* command,
                    const std::shared_ptr<RunOptions>& options) {
  AddBoundedDurationOption(
      command, "--park-after", absl::Milliseconds(1), absl::Hours(1),
      [options](absl::Duration after) { options->park_after = after; },
      "The program's memory may serve others when it has asked nothing of the "
      "GPU for so long and the GPU is done with its work [1s]");
  command
      ->add_option_function<std::string>(
          "--park",
          [options](const std::string& text) { options->park = text; },
          "Whether its memory may serve others while it is idle: where all of "
          "its use can be seen, never, or in any case [auto]")
      ->check(CLI::IsMember({"auto", "off", "force"}))
      ->type_name("auto|off|force");
  command
      ->add_option("--group", options->group,
                   "Processes of the tenant that wait for each other, the "
                   "ranks of a model say, and name the same group: their "
                   "memory serves others when all of them are idle, and "
                   "comes back together; the ranks of one NCCL communicator "
                   "need no name")
      ->check(CLI::Validator(
          [](const std::string& name) {
            const bool printable =
                std::all_of(name.begin(), name.end(),
                            [](char c) { return c >= ' ' && c <= '~'; });
            return name.empty() || name.size() > 63 || !printable
                       ? std::string("has 1 to 63 printable characters")
                       : std::string();
          },
          ""))
      ->type_name("NAME");
  command->add_flag_callback(
      "--no-park", [options] { options->park = "off"; }, "As --park=off");
}

}  // namespace

void AddRunCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "run",
      "Run a program that knows nothing of gmb, its device memory leased");
  const auto options = std::make_shared<RunOptions>();
  AddTextOption(
      command, "--tenant", &options->tenant,
      "Whose client to be: its own socket directory is used if there is one "
      "that this user may enter")
      ->type_name("NAME");
  AddTextOption(command, "--tenant-token-file", &options->tenant_token_file,
                "Be the tenant whose token this file holds, on the shared "
                "socket")
      ->type_name("FILE");
  AddBoundedDurationOption(
      command, "--wait", absl::ZeroDuration(), absl::Hours(1),
      [options](absl::Duration wait) { options->wait = wait; },
      "How long an allocation may wait for memory before it fails [1s]");
  command
      ->add_option_function<std::string>(
          "--fallback",
          [options](const std::string& text) {
            options->native_without_broker = text == "native";
          },
          "Without a broker, now or later: allocations fail, or are the "
          "driver's own [fail]")
      ->check(CLI::IsMember({"fail", "native"}))
      ->type_name("fail|native");
  command
      ->add_option_function<std::string>(
          "--vmm", [options](const std::string& text) { options->vmm = text; },
          "Memory that the program makes by cuMemCreate and maps itself: "
          "leased, or the driver's own, which it may also bind to multicast "
          "objects and share with other machines [lease]")
      ->check(CLI::IsMember({"lease", "native"}))
      ->type_name("lease|native");
  AddParkOptions(command, options);
  command->add_flag("--quiet", options->quiet,
                    "Do not say at the start who the program is, what it may "
                    "have, and whether it lends it");
  command->add_flag("--verbose", options->verbose,
                    "The program says on standard error why memory was "
                    "refused, or why it has no session");
  AddTextOption(command, "--preload", &options->preload,
                "libgmb_preload.so, if it is not where gmb was installed")
      ->type_name("FILE");
  command
      ->add_option("PROGRAM", options->program,
                   "The program to run, with its arguments; after --")
      ->type_name("")
      ->required();
  command->footer(kRunFooter);
  command->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return LaunchProgram(context, *options);
    };
  });
}

}  // namespace gmb::cli
