// The answer to `gmb reclaim` for people.
#include "client/cli/views/reclaim_view.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

void PrintReclaimed(const v1::ReclaimRequest& request,
                    const v1::ReclaimResponse& answer, const Terminal& terminal,
                    std::ostream& out) {
  const Tone tone = answer.lacking_bytes() > 0 ? Tone::kWarning : Tone::kGood;
  out << terminal.Paint(
             tone, absl::StrCat(
                       "reclaimed ", SizeText(answer.reclaimed_bytes()),
                       request.bytes() == 0
                           ? ""
                           : absl::StrCat(" of the ", SizeText(request.bytes()),
                                          " asked for")))
      << " from tenant " << Printable(request.tenant()) << '\n';
  if (answer.lacking_bytes() > 0)
    out << SizeText(answer.lacking_bytes()) << " are lacking\n";
  if (answer.findings().empty()) {
    if (answer.lacking_bytes() > 0) {
      out << "nothing more was to be had in time; `gmb lease list --tenant "
          << Printable(request.tenant()) << "` shows what it has\n";
    }
    return;
  }
  out << "why the rest stayed:\n";
  for (const std::string& finding : answer.findings())
    out << "- " << Printable(finding) << '\n';
}

}  // namespace gmb::cli
