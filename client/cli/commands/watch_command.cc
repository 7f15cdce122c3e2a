// `gmb watch`: prints events as they happen.
#include <algorithm>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/did_you_mean.h"
#include "client/cli/interrupt.h"
#include "client/cli/views/event_kinds.h"
#include "client/cli/views/event_view.h"

namespace gmb::cli {
namespace {

// "evicted", or some of them with commas between. CLI11 puts a newline between
// the words of an option that is given several times.
absl::Status ParseKinds(const std::string& text, v1::WatchRequest* request) {
  const std::vector<std::string> known = EventKinds();
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(",\n"))) {
    const std::string kind(word);
    if (!std::binary_search(known.begin(), known.end(), kind)) {
      const std::string meant = DidYouMean(kind, known);
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no kind of event \"", kind, "\"",
          meant.empty() ? "; docs/operations.md lists all, evicted and "
                          "session_opened among them"
                        : absl::StrCat("; did you mean ", meant, "?")));
    }
    request->add_kinds(kind);
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Watch(Context& context,
                               const v1::WatchRequest& request) {
  const Interrupt interrupt;
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  const std::unique_ptr<EventReader> reader = client.Watch(request);
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
  const auto request = std::make_shared<v1::WatchRequest>();
  AddTextOption(command, "--tenant", request->mutable_tenant(),
                "Of this tenant only")
      ->type_name("NAME");
  AddParsedOption(
      command, "--kind",
      [request](const std::string& text) {
        return ParseKinds(text, request.get());
      },
      "Only events of these kinds")
      ->type_name("KIND,...")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  command->footer(
      "With --output json every line is one JSON object.\n\n"
      "Example: gmb watch --tenant a --kind evicted,restored");
  command->callback([chosen, request] {
    *chosen = [request](Context& context) { return Watch(context, *request); };
  });
}

}  // namespace gmb::cli
