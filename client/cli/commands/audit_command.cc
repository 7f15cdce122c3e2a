// `gmb audit`.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/list_and_print.h"
#include "client/cli/views/list_view.h"
#include "client/cli/views/outside_view.h"

namespace gmb::cli {
namespace {

struct AuditOptions {
  uint32_t limit = 100;
  std::optional<absl::Duration> since;
  std::string tenant;
};

absl::StatusOr<ExitCode> ListAudit(Context& context,
                                   const AuditOptions& options) {
  const uint32_t limit = options.limit;
  v1::ListAuditRequest request;
  if (options.since.has_value()) {
    request.mutable_since()->set_seconds(
        absl::ToUnixSeconds(absl::Now() - *options.since));
  }
  request.set_subject(options.tenant);
  request.set_page_size(
      static_cast<int32_t>(std::min<uint32_t>(limit, AdminClient::kRowsAPage)));
  uint32_t left = limit;
  const auto keep = [&left](v1::ListAuditResponse* page) {
    const auto rows = static_cast<uint32_t>(page->entries_size());
    if (rows > left) {
      page->mutable_entries()->DeleteSubrange(static_cast<int>(left),
                                              static_cast<int>(rows - left));
    }
    left -= std::min(rows, left);
    return left > 0;
  };
  return ListAndPrint(
      context, &AdminClient::ListAudit, request,
      [&](const v1::ListAuditResponse& audit, Table::Flow* flow) {
        PrintAudit(audit, context.terminal, context.out, flow);
      },
      keep);
}

}  // namespace

void AddAuditCommand(CLI::App* app, Action* chosen) {
  CLI::App* const audit = app->add_subcommand(
      "audit", "Show what operators changed, the newest first");
  const auto options = std::make_shared<AuditOptions>();
  AddWholeOption(
      audit, "--limit", 1, std::numeric_limits<uint32_t>::max(),
      [options](uint64_t n) { options->limit = n; },
      "At most so many entries [100]");
  AddBoundedDurationOption(
      audit, "--since", absl::Seconds(1), absl::Hours(24 * 3660),
      [options](absl::Duration time) { options->since = time; },
      "Of so long ago until now [of all times]");
  AddTextOption(audit, "--tenant", &options->tenant,
                "Of this tenant only [of all]")
      ->type_name("NAME");
  audit->footer("Example: gmb audit --since 24h --tenant a");
  audit->callback([chosen, options] {
    *chosen = [options](Context& context) {
      return ListAudit(context, *options);
    };
  });
}

}  // namespace gmb::cli
