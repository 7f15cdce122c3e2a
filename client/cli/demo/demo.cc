// The demo from start to end.
#include "client/cli/demo/demo.h"

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/check_list.h"
#include "client/cli/demo/keeper_process.h"
#include "client/cli/demo/pool_choice.h"
#include "client/cli/demo/scenario.h"
#include "client/cli/demo/screen.h"
#include "client/cli/demo/stage.h"
#include "client/cli/demo/sweeper.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/interrupt.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kStopPatience = absl::Seconds(10);

std::unique_ptr<Screen> MakeScreen(Context* context,
                                   const DemoOptions& options) {
  if (context->terminal.is_tty && !options.plain && !context->json) {
    return std::make_unique<LiveScreen>(context, STDOUT_FILENO);
  }
  return std::make_unique<PlainScreen>(context);
}

// From the first process to the broker's end; what is wrong goes on the list.
void Play(BrokerProcess::Options options, const std::stop_token& stop,
          Screen* screen, CheckList* checks) {
  absl::StatusOr<KeeperProcess> keeper =
      KeeperProcess::Start(options.dir, options.interrupt_fd);
  if (!keeper.ok()) {
    checks->Record(false, "the keeper starts",
                   std::string(keeper.status().message()));
    return;
  }
  options.device_flags.insert(options.device_flags.end(),
                              {"--keeper", keeper->socket()});
  absl::StatusOr<std::unique_ptr<BrokerProcess>> broker =
      BrokerProcess::Start(options);
  if (!broker.ok()) {
    checks->Record(false, "the broker starts",
                   std::string(broker.status().message()));
    return;
  }
  {
    Stage stage({.broker = broker->get(),
                 .screen = screen,
                 .checks = checks,
                 .dir = options.dir,
                 .stop = stop,
                 .interrupt_fd = options.interrupt_fd});
    const absl::Status played = PlayScenario(stage);
    const Monitor::Findings findings = stage.Close();
    if (!played.ok()) {
      const std::string broker_state =
          (*broker)->running() ? "" : "; the broker has ended";
      checks->Record(false, "the play comes to its end",
                     absl::StrCat(played.message(), broker_state));
      return;  // everybody is killed on the way out
    }
    checks->Record(
        findings.unsound == 0,
        "the parts of the pool add up to it, and nobody exceeds a limit "
        "unnoticed",
        findings.unsound == 0
            ? absl::StrCat("in all ", findings.snapshots, " snapshots")
            : absl::StrCat("in ", findings.unsound, " of ", findings.snapshots,
                           " snapshots not: ", findings.first_unsound));
  }
  const absl::StatusOr<std::string> ended = (*broker)->Stop(kStopPatience);
  checks->Record(ended.ok() && *ended == "exit code 0",
                 "the broker ends in order on SIGTERM",
                 ended.ok() ? *ended : std::string(ended.status().message()));
  const absl::StatusOr<std::string> kept = keeper->AwaitEnd(kStopPatience);
  checks->Record(kept.ok() && *kept == "exit code 0",
                 "the keeper ends with it, for nothing is left to keep",
                 kept.ok() ? *kept : std::string(kept.status().message()));
}

void PrintSummary(const CheckList& checks, const std::string& kept_dir,
                  Context& context) {
  if (context.json) {
    context.out << LineJson(Json{{"passed", checks.passed()},
                                 {"checks", checks.AsJson()}})
                << std::endl;
    return;
  }
  context.out << '\n';
  checks.Print(context.out, context.terminal);
  context.out << '\n'
              << (checks.passed()
                      ? context.terminal.Paint(
                            Tone::kGood, absl::StrCat("All ", checks.size(),
                                                      " checks passed."))
                      : context.terminal.Paint(Tone::kBad,
                                               "Not all is as it should be."))
              << '\n';
  if (!kept_dir.empty()) {
    context.out << "Configuration and logs are in " << kept_dir << '\n';
  } else if (!checks.passed()) {
    context.out << "Run it again with --keep to see the logs of broker and "
                   "processes.\n";
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunDemo(Context& context, const DemoOptions& options) {
  // A reader that goes away must not end it before it has cleaned up.
  ::signal(SIGPIPE, SIG_IGN);
  const Interrupt interrupt;
  GMB_ASSIGN_OR_RETURN(const std::string program, FindBroker());
  GMB_ASSIGN_OR_RETURN(const PoolChoice choice,
                       ChoosePool(options.device, internal::ProbeDevices(),
                                  AvailableHostBytes()));
  std::unique_ptr<Sweeper> sweeper;  // until the directory is removed
  GMB_ASSIGN_OR_RETURN(TempDir dir, TempDir::Make());
  if (options.keep) {
    dir.Keep();
  } else {
    GMB_ASSIGN_OR_RETURN(sweeper, Sweeper::Start(dir.path()));
  }

  CheckList checks;
  {
    const std::unique_ptr<Screen> screen = MakeScreen(&context, options);
    screen->BeginAct(absl::StrCat(
        "A broker starts, with a keeper and a pool of ", choice.why));
    Play({.program = program,
          .device_flags = choice.broker_flags,
          .config = ScenarioConfig(),
          .dir = dir.path(),
          .interrupt_fd = interrupt.fd()},
         interrupt.token(), screen.get(), &checks);
    screen->End();
  }
  PrintSummary(checks, options.keep ? dir.path() : "", context);
  return checks.passed() ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace gmb::cli
