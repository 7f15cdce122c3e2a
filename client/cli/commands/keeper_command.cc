// `gmb keeper`: looks at a keeper, or makes it give all back. No broker is
// needed for either.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/keeper_look.h"
#include "client/cli/confirm.h"
#include "client/cli/text/text.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::cli {
namespace {

using keeper::KeeperStatus;

struct KeeperOptions {
  std::string socket;
  bool yes = false;
};

absl::StatusOr<keeper::KeeperLink> Connect(const KeeperOptions& options) {
  absl::StatusOr<keeper::KeeperLink> link = keeper::KeeperLink::Connect(
      {.socket = options.socket, .role = keeper::Role::kCommand});
  // No keeper is where no socket is, however unfit the directory may be.
  std::error_code error;
  const auto there = std::filesystem::symlink_status(options.socket, error);
  if (absl::IsFailedPrecondition(link.status()) &&
      there.type() == std::filesystem::file_type::not_found) {
    return absl::UnavailableError(absl::StrCat("no keeper listens at ",
                                               options.socket, ": ",
                                               link.status().message()));
  }
  return link;
}

absl::StatusOr<KeeperStatus> Ask(keeper::KeeperLink* link, keeper::Kind kind) {
  GMB_ASSIGN_OR_RETURN(const keeper::KeeperLink::Answer answer,
                       link->Ask(kind, "", {}, keeper::Kind::kStatusIs));
  return keeper::DecodeStatus(answer.body);
}

std::string Entries(uint64_t entries, uint64_t fds) {
  return absl::StrCat(entries, entries == 1 ? " entry" : " entries", " with ",
                      CountText(fds, "fd"));
}

std::string BrokerWord(const KeeperStatus& status) {
  switch (status.broker) {
    case KeeperStatus::Broker::kNone:
      return "none";
    case KeeperStatus::Broker::kServed:
      return "served";
    case KeeperStatus::Broker::kHungUp:
      return "hung_up";
    case KeeperStatus::Broker::kDead:
      return "dead";
  }
  return "";
}

std::string BrokerText(const KeeperStatus& status) {
  const std::string name = BrokerName(status);
  switch (status.broker) {
    case KeeperStatus::Broker::kNone:
      return "none";
    case KeeperStatus::Broker::kServed:
      return absl::StrCat(name, ", connected");
    case KeeperStatus::Broker::kHungUp:
      return absl::StrCat(name,
                          ", has hung up and lives: no other broker is served "
                          "until it has died");
    case KeeperStatus::Broker::kDead:
      return absl::StrCat(name, ", has died: the next one takes over");
  }
  return "";
}

Json StatusJson(const KeeperLook& look) {
  const KeeperStatus& status = look.status;
  Json json{{"pid", status.pid},
            {"broker", BrokerWord(status)},
            {"broker_pid", status.broker_pid},
            {"entries", status.entries},
            {"fds", status.fds},
            {"max_entries", status.max_entries},
            {"max_fds", status.max_fds},
            {"living_peers", status.living_peers},
            {"sessions", nullptr},
            {"memory_bytes", nullptr},
            {"gives_back_in", nullptr}};
  if (look.count.has_value()) {
    json["sessions"] = look.count->sessions;
    json["memory_bytes"] = look.count->memory_bytes;
  }
  if (status.gives_back_in_ms.has_value()) {
    json["gives_back_in"] =
        static_cast<double>(*status.gives_back_in_ms) / 1000;
  }
  return json;
}

void PrintStatus(const KeeperLook& look, std::ostream& out) {
  const KeeperStatus& status = look.status;
  out << "keeper      pid " << status.pid << "\nbroker      "
      << BrokerText(status) << "\nkept        "
      << Entries(status.entries, status.fds) << " (at most "
      << status.max_entries << " and " << status.max_fds << ")\nclients     "
      << status.living_peers << " alive, for whose sake it is kept\n";
  if (look.ended_sessions() > 0) {
    out << "sessions    " << look.count->sessions << ", "
        << look.ended_sessions() << " of processes that have ended\n";
  }
  if (look.count.has_value()) {
    out << "memory      " << SizeText(look.count->memory_bytes)
        << " of host memory; how much of a GPU it is the keeper does not "
           "know\n";
  }
  if (status.gives_back_in_ms.has_value() && status.entries > 0) {
    out << "gives back  in "
        << DurationText(absl::Milliseconds(
               static_cast<int64_t>(*status.gives_back_in_ms)))
        << ", unless a broker comes\n";
  }
}

absl::StatusOr<ExitCode> Show(Context& context, const KeeperOptions& options) {
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link, Connect(options));
  GMB_ASSIGN_OR_RETURN(const KeeperLook look, LookAtKeeper(&link));
  if (context.json) {
    context.PrintJson(StatusJson(look));
  } else {
    PrintStatus(look, context.out);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Drop(Context& context, const KeeperOptions& options) {
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link, Connect(options));
  GMB_ASSIGN_OR_RETURN(const KeeperStatus before,
                       Ask(&link, keeper::Kind::kStatus));
  if (!options.yes && before.entries > 0) {
    GMB_RETURN_IF_ERROR(Confirm(
        context,
        absl::StrCat("this gives back ", Entries(before.entries, before.fds),
                     ", which a dead broker has left: contents that no living "
                     "process has mapped are lost, and no broker can take "
                     "over")));
  }
  GMB_ASSIGN_OR_RETURN(const KeeperStatus dropped,
                       Ask(&link, keeper::Kind::kDrop));
  if (context.json) {
    context.PrintJson(Json{{"entries", dropped.entries}, {"fds", dropped.fds}});
  } else {
    context.out << "given back: " << Entries(dropped.entries, dropped.fds)
                << '\n';
  }
  return ExitCode::kOk;
}

std::shared_ptr<KeeperOptions> AddOptions(CLI::App* command) {
  auto options = std::make_shared<KeeperOptions>();
  AddTextOption(command, "--socket", &options->socket,
                "The path that gmb-keeper was started with")
      ->type_name("PATH")
      ->required();
  return options;
}

}  // namespace

void AddKeeperCommands(CLI::App* app, Action* chosen) {
  CLI::App* const group = app->add_subcommand(
      "keeper", "Look at a keeper, or make it give all back");
  group->require_subcommand(0, 1);
  group->footer(
      "A keeper holds what a broker's leases are made of while the broker is "
      "away; see\n`gmb-keeper --help`. Run as the user of the keeper.\n\n"
      "Example: gmb keeper status --socket /run/gmb-keeper/keeper.sock");

  CLI::App* const status = group->add_subcommand(
      "status", "Show what it keeps, for which broker, and how long");
  status->footer(
      "Exit code 3 when no keeper answers.\n\n"
      "Example: gmb keeper status --socket /run/gmb-keeper/keeper.sock");
  status->callback([chosen, options = AddOptions(status)] {
    *chosen = [options](Context& context) { return Show(context, *options); };
  });

  CLI::App* const drop = group->add_subcommand(
      "drop", "Give all back that a dead broker has left");
  const auto options = AddOptions(drop);
  drop->add_flag("--yes,-y", options->yes, "Do not ask");
  drop->footer(
      "Refused while the broker lives. Memory that a client still has mapped "
      "is the\ndriver's again when that client lets go.\n\n"
      "Example: gmb keeper drop --socket /run/gmb-keeper/keeper.sock --yes");
  drop->callback([chosen, options] {
    *chosen = [options](Context& context) { return Drop(context, *options); };
  });
}

}  // namespace gmb::cli
