// `gmb apply`: tenants as a file declares them.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/confirm.h"
#include "client/cli/text/text.h"
#include "client/cli/views/apply_view.h"

namespace gmb::cli {
namespace {

struct ApplyOptions {
  std::string file;
  v1::ApplyRequest request;
  bool yes = false;
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text(kMostBytes + 1, 0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (path != "-" && !file.is_open())) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path,
                     ": does it exist, and may this user "
                     "read it?"));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a file to be applied has at most 1 MiB: ", path));
  }
  return text;
}

bool DeletesAny(const v1::ApplyResponse& answer) {
  return std::any_of(answer.tenants().begin(), answer.tenants().end(),
                     [](const v1::AppliedTenant& tenant) {
                       return tenant.how() == v1::AppliedTenant::DELETED;
                     });
}

// A change that takes memory from processes, or deletes, is shown and asked
// first.
absl::Status ConfirmChange(Context& context, const v1::ApplyResponse& preview) {
  const uint64_t bytes = BytesTaken(preview);
  if (bytes == 0 && !DeletesAny(preview)) return absl::OkStatus();
  PrintApplied(preview, context.terminal, context.err);
  return Confirm(context, bytes > 0
                              ? absl::StrCat("this takes ", SizeText(bytes),
                                             " from running processes")
                              : "this deletes tenants");
}

absl::StatusOr<ExitCode> Apply(Context& context, const ApplyOptions& options) {
  v1::ApplyRequest request = options.request;
  GMB_ASSIGN_OR_RETURN(*request.mutable_yaml(), ReadFile(options.file));
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  if (!request.dry_run() && !options.yes) {
    v1::ApplyRequest ask = request;
    ask.set_dry_run(true);
    GMB_ASSIGN_OR_RETURN(const v1::ApplyResponse preview, client.Apply(ask));
    GMB_RETURN_IF_ERROR(ConfirmChange(context, preview));
    // The change that was confirmed, and nothing else.
    request.set_if_revision(preview.revision());
  }
  GMB_ASSIGN_OR_RETURN(const v1::ApplyResponse answer, client.Apply(request));
  if (context.json) {
    context.PrintJson(ToJson(answer));
  } else {
    PrintApplied(answer, context.terminal, context.out);
  }
  return ExitCode::kOk;
}

}  // namespace

void AddApplyCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command = app->add_subcommand(
      "apply", "Make, change and delete tenants so that they are as in a file");
  const auto options = std::make_shared<ApplyOptions>();
  AddTextOption(command, "--file,-f", &options->file,
                "YAML with tenants, as gmbd's configuration has them; -: "
                "standard input")
      ->type_name("FILE")
      ->required();
  AddTextOption(command, "--name", options->request.mutable_name(),
                "By which it is known what this file made; SOURCE shows it")
      ->type_name("NAME")
      ->required();
  command->add_flag_function(
      "--dry-run", [options](int64_t) { options->request.set_dry_run(true); },
      "Say what would change, and what would be taken from whom");
  command->add_flag_function(
      "--force", [options](int64_t) { options->request.set_force(true); },
      "Also tenants that gmbd's file, or an apply of another name, declares");
  AddWholeOption(
      command, "--if-revision", 1, std::numeric_limits<int64_t>::max(),
      [options](uint64_t n) { options->request.set_if_revision(n); },
      "Only if nothing was changed since this revision");
  command->add_flag("--yes,-y", options->yes,
                    "Take memory from processes, and delete, without asking");
  command->footer(
      "All of the file is applied, or nothing. A field that it leaves out has "
      "its default. A tenant\n"
      "that an apply of the same name made, and that the file does not name "
      "any "
      "more, is deleted;\n"
      "one with processes is refused.\n\n"
      "Example: gmb apply -f tenants.yaml --name web --dry-run");
  command->callback([chosen, options] {
    *chosen = [options](Context& context) { return Apply(context, *options); };
  });
}

}  // namespace gmb::cli
