// Events for people, one line each.
#include "client/cli/views/event_view.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

Tone ToneOfEvent(absl::string_view kind) {
  if (absl::StrContains(kind, "denied") || absl::StrContains(kind, "lost") ||
      absl::StrContains(kind, "failed") || kind == "terminated" ||
      kind == "not_terminated") {
    return Tone::kBad;
  }
  if (absl::StrContains(kind, "waiting") ||
      absl::StrContains(kind, "pending") || absl::StrContains(kind, "drain") ||
      absl::StrContains(kind, "missing") ||
      absl::StrContains(kind, "unreturned") || kind == "evict_started" ||
      absl::StartsWith(kind, "pause_")) {
    return Tone::kWarning;
  }
  if (absl::StrContains(kind, "granted") ||
      absl::StrContains(kind, "applied") || kind == "restored")
    return Tone::kGood;
  return Tone::kPlain;
}

void PrintEvent(const v1::Event& event, const Terminal& terminal,
                std::ostream& out) {
  if (event.missed() > 0) {
    out << terminal.Paint(
               Tone::kWarning,
               absl::StrCat(CountText(event.missed(), "event"), " missed here"))
        << '\n';
  }
  out << terminal.Paint(Tone::kFaint, TimeText(event.at())) << "  "
      << terminal.Paint(ToneOfEvent(event.kind()),
                        absl::StrFormat("%-18s", Printable(event.kind())));
  if (!event.tenant().empty()) out << "  tenant=" << Printable(event.tenant());
  if (event.session_id() != 0) out << "  session=" << event.session_id();
  if (event.lease_id() != 0) out << "  lease=" << event.lease_id();
  if (event.bytes() != 0) out << "  " << SizeText(event.bytes());
  if (!event.device().empty()) out << "  on " << Printable(event.device());
  if (event.has_took())
    out << "  took " << DurationText(ToDuration(event.took()));
  if (!event.message().empty()) out << "  " << Printable(event.message());
  out << '\n';
}

}  // namespace gmb::cli
