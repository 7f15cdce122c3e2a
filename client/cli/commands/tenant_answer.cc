// A tenant was changed, or would be: what the broker says to that.
#include "client/cli/commands/tenant_answer.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"
#include "client/cli/views/tenant_view.h"

namespace gmb::cli {
namespace {

void PrintPreview(const Context& context,
                  const v1::SetTenantResponse& preview) {
  const std::string takes = TakesText(preview);
  if (preview.made()) context.out << "this makes a new tenant\n";
  context.out << (takes.empty() ? "this takes nothing from running processes"
                                : takes)
              << "\nnothing was changed: it was asked what would be\n";
}

void PrintChanged(const Context& context, const v1::SetTenantResponse& answer) {
  // A name that was misspelt is seen by it.
  if (answer.made()) {
    context.out << "made tenant " << Printable(answer.tenant().name()) << '\n';
  }
  PrintTenant(answer.tenant(), context.terminal, context.out);
  for (const v1::Change& change : answer.changes()) {
    PrintChange(change, context.terminal, context.out);
  }
}

}  // namespace

std::string TakesText(const v1::SetTenantResponse& preview) {
  std::string takes;
  for (const v1::Change& change : preview.changes()) {
    if (change.takes_bytes() == 0) continue;
    absl::StrAppend(&takes, takes.empty() ? "this takes " : ", and ",
                    SizeText(change.takes_bytes()), " of ",
                    Printable(change.device()));
  }
  if (takes.empty()) return takes;
  return absl::StrCat(takes, " from tenant ",
                      Printable(preview.tenant().name()), ", which has ",
                      CountText(preview.tenant().sessions(), "session"));
}

void PrintTenantAnswer(const Context& context, bool dry_run,
                       const v1::SetTenantResponse& answer) {
  if (dry_run) {
    PrintPreview(context, answer);
  } else {
    PrintChanged(context, answer);
  }
}

}  // namespace gmb::cli
