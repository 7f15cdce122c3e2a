// `gmb watch`: prints events as they happen.
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/views/event_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> Watch(Context& context) {
  const Interrupt interrupt;
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  const std::unique_ptr<EventReader> reader = client.Watch();
  const std::stop_callback cancel(interrupt.token(),
                                  [&reader] { reader->Cancel(); });
  v1::Event event;
  while (reader->Read(&event)) {
    if (context.json) {
      context.out << LineJson(ToJson(event)) << std::endl;
    } else {
      PrintEvent(event, context.terminal, context.out);
      context.out.flush();
    }
    if (!context.out) break;  // nobody reads any more
  }
  if (!context.out) reader->Cancel();
  const absl::Status ended = reader->Finish();
  if (interrupt.token().stop_requested() || !context.out) return ExitCode::kOk;
  return ended;
}

}  // namespace

void AddWatchCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "watch", "Print what happens, one line an event, until Ctrl-C");
  command->footer(
      "With --output json every line is one JSON object.\n\nExample: gmb "
      "watch");
  command->callback([chosen] { *chosen = &Watch; });
}

}  // namespace gmb::cli
