#include "client/cli/list_view.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace gmb::cli {
namespace {

using Align = Table::Align;

std::string PidText(int32_t pid) { return pid == 0 ? "-" : absl::StrCat(pid); }

std::string ContentsText(v1::Contents contents) {
  // Unspecified means PRESERVE on the wire.
  if (contents == v1::CONTENTS_UNSPECIFIED) return "preserve";
  return v1::Contents_IsValid(contents)
             ? absl::AsciiStrToLower(v1::Contents_Name(contents))
             : absl::StrCat(static_cast<int>(contents));
}

Table::Cell StateCell(v1::LeaseInfo::State state) {
  if (!v1::LeaseInfo::State_IsValid(state))
    return absl::StrCat(static_cast<int>(state));
  return {absl::AsciiStrToLower(v1::LeaseInfo::State_Name(state)),
          state == v1::LeaseInfo::MAPPED ? Tone::kGood : Tone::kWarning};
}

}  // namespace

void PrintSessions(const v1::ListSessionsResponse& sessions, absl::Time now,
                   const Terminal& terminal, std::ostream& out) {
  if (sessions.sessions().empty()) {
    out << "no sessions\n";
    return;
  }
  Table table({{"session", Align::kRight},
               {"tenant"},
               {"program"},
               {"pid", Align::kRight},
               {"uid", Align::kRight},
               {"age", Align::kRight},
               {"leased", Align::kRight},
               {"leases", Align::kRight},
               {"waiting", Align::kRight},
               {"stream"}});
  for (const v1::SessionInfo& session : sessions.sessions()) {
    table.AddRow({absl::StrCat(session.id()),
                  session.tenant(),
                  session.program(),
                  PidText(session.pid()),
                  absl::StrCat(session.uid()),
                  AgeText(session.since(), now),
                  {SizeText(session.leased_bytes()), Tone::kAccent},
                  absl::StrCat(session.leases()),
                  absl::StrCat(session.waiting()),
                  session.streaming() ? Table::Cell("open", Tone::kGood)
                                      : Table::Cell("none", Tone::kWarning)});
  }
  table.Print(out, terminal);
}

void PrintLeases(const v1::ListLeasesResponse& leases, absl::Time now,
                 const Terminal& terminal, std::ostream& out) {
  if (leases.leases().empty()) {
    out << "no leases\n";
    return;
  }
  Table table({{"lease", Align::kRight},
               {"tenant"},
               {"session", Align::kRight},
               {"device"},
               {"bytes", Align::kRight},
               {"slabs", Align::kRight},
               {"contents"},
               {"state"},
               {"age", Align::kRight}});
  for (const v1::LeaseInfo& lease : leases.leases()) {
    table.AddRow({absl::StrCat(lease.id()),
                  lease.tenant(),
                  absl::StrCat(lease.session_id()),
                  lease.device(),
                  {SizeText(lease.bytes()), Tone::kAccent},
                  absl::StrCat(lease.slabs()),
                  ContentsText(lease.contents()),
                  StateCell(lease.state()),
                  AgeText(lease.since(), now)});
  }
  table.Print(out, terminal);
}

void PrintAudit(const v1::ListAuditResponse& audit, const Terminal& terminal,
                std::ostream& out) {
  if (audit.entries().empty()) {
    out << "no changes by operators yet\n";
    return;
  }
  Table table({{"at"}, {"operator"}, {"action"}, {"subject"}, {"detail"}});
  for (const v1::AuditEntry& entry : audit.entries()) {
    table.AddRow({DateText(entry.at()),
                  entry.operator_name(),
                  {entry.action(), Tone::kStrong},
                  entry.subject(),
                  entry.detail()});
  }
  table.Print(out, terminal);
}

}  // namespace gmb::cli
