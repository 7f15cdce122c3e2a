// `gmb session`: lists client processes, and hangs one up.
#include <limits>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/call_and_print.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/list_and_print.h"
#include "client/cli/confirm.h"
#include "client/cli/text/text.h"
#include "client/cli/views/list_view.h"
#include "client/cli/views/outside_view.h"

namespace gmb::cli {
namespace {

absl::StatusOr<ExitCode> ListSessions(Context& context,
                                      const std::string& tenant) {
  v1::ListSessionsRequest request;
  request.set_tenant(tenant);
  v1::ListSessionsResponse first;  // of people's: its outside processes alone
  const absl::StatusOr<ExitCode> listed = ListAndPrint(
      context, &AdminClient::ListSessions, request,
      [&](const v1::ListSessionsResponse& sessions, Table::Flow* flow) {
        PrintSessions(sessions, absl::Now(), context.terminal, context.out,
                      flow);
        first.mutable_outside()->MergeFrom(sessions.outside());
      });
  PrintOutside(first.outside(), context.terminal, context.out);
  return listed;
}

struct CloseOptions {
  uint64_t id = 0;
  bool yes = false;
};

absl::StatusOr<ExitCode> CloseSession(Context& context,
                                      const CloseOptions& options) {
  if (!options.yes) {
    GMB_RETURN_IF_ERROR(Confirm(
        context, absl::StrCat("session ", options.id,
                              " ends: its leases are taken back, and what its "
                              "process has mapped is lost to it when it next "
                              "asks for its memory")));
  }
  v1::CloseSessionRequest request;
  request.set_id(options.id);
  return CallAndPrint(
      context, &AdminClient::CloseSession, request,
      [&](const v1::CloseSessionResponse& answer, const AdminClient&) {
        const v1::SessionInfo& session = answer.session();
        context.out << "closed session " << session.id() << " of tenant "
                    << Printable(session.tenant()) << ": "
                    << Printable(session.program()) << ", pid " << session.pid()
                    << ", " << SizeText(session.leased_bytes()) << " leased\n";
      });
}

void AddClose(CLI::App* session, Action* chosen) {
  CLI::App* const close = session->add_subcommand(
      "close", "Hang a client process up: its leases end");
  const auto options = std::make_shared<CloseOptions>();
  AddWholeOption(
      close, "ID", 1, std::numeric_limits<int64_t>::max(),
      [options](uint64_t id) { options->id = id; },
      "The session, as `gmb session list` shows it")
      ->type_name("")
      ->required();
  close->add_flag("--yes,-y", options->yes, "Do not ask");
  close->footer(
      "The process lives on, and is told that its session is over; it may "
      "connect again. What it\n"
      "has mapped counts as unreturned until it unmaps that, or ends.\n\n"
      "Example: gmb session close 7");
  close->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return CloseSession(context, *options);
    };
  });
}

}  // namespace

void AddSessionCommands(CLI::App* app, Action* chosen) {
  CLI::App* const session = app->add_subcommand(
      "session", "Show the client processes connected, or hang one up");
  session->require_subcommand(0, 1);
  session->footer("Example: gmb session list");
  CLI::App* const list = session->add_subcommand(
      "list", "One line a client process: who it is and what it holds");
  const auto tenant = std::make_shared<std::string>();
  AddTextOption(list, "--tenant", tenant.get(), "Of this tenant only")
      ->type_name("NAME");
  list->alias("ls");
  list->footer("Example: gmb session list --tenant a");
  list->callback([chosen, tenant] {
    *chosen = [tenant](Context& context) {
      return ListSessions(context, *tenant);
    };
  });
  AddClose(session, chosen);
}

}  // namespace gmb::cli
