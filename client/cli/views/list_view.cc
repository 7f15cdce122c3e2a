// Sessions, leases and the audit log for people.
#include "client/cli/views/list_view.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/text/text.h"

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
  const Tone tone = state == v1::LeaseInfo::MAPPED    ? Tone::kGood
                    : state == v1::LeaseInfo::EVICTED ? Tone::kFaint
                                                      : Tone::kWarning;
  return {absl::AsciiStrToLower(v1::LeaseInfo::State_Name(state)), tone};
}

// Of a shared lease whose writer has ended: none.
std::string SessionText(uint64_t session) {
  return session == 0 ? "-" : absl::StrCat(session);
}

// "hard, sealed, shared as llm, 2 attached": what keeps a lease on the device
// or spares it a copy, and who has it.
std::string LeaseNotes(const v1::LeaseInfo& lease) {
  std::vector<std::string> notes;
  if (lease.hard()) notes.emplace_back("hard");
  if (lease.backed()) notes.emplace_back("backed");
  if (lease.sealed()) notes.emplace_back("sealed");
  if (!lease.share_name().empty()) {
    notes.push_back(absl::StrCat("shared as ", lease.share_name(), ", ",
                                 lease.attached(), " attached"));
    if (lease.keep()) notes.emplace_back("kept");
  }
  return absl::StrJoin(notes, ", ");
}

// "off", "parked 12.5 s": the time is how long it has been idle.
Table::Cell GateCell(const v1::SessionInfo& session) {
  const v1::SessionInfo::Gate gate = session.gate();
  if (gate == v1::SessionInfo::GATE_UNSPECIFIED) return {"-", Tone::kFaint};
  if (!v1::SessionInfo::Gate_IsValid(gate))
    return absl::StrCat(static_cast<int>(gate));
  const std::string word = absl::AsciiStrToLower(
      absl::StripPrefix(v1::SessionInfo::Gate_Name(gate), "GATE_"));
  const absl::Duration idle = ToDuration(session.idle());
  const Tone tone = gate == v1::SessionInfo::GATE_OFF      ? Tone::kFaint
                    : gate == v1::SessionInfo::GATE_ACTIVE ? Tone::kGood
                    : gate == v1::SessionInfo::GATE_PARKED ? Tone::kPlain
                                                           : Tone::kWarning;
  return {idle > absl::ZeroDuration()
              ? absl::StrCat(word, " ", DurationText(idle))
              : word,
          tone};
}

Table::Cell BytesOrDash(uint64_t bytes) {
  return bytes == 0 ? Table::Cell("-", Tone::kFaint)
                    : Table::Cell(SizeText(bytes));
}

std::string SessionNotes(const v1::SessionInfo& session) {
  std::vector<std::string> notes;
  if (session.waiting() > 0)
    notes.push_back(absl::StrCat(session.waiting(), " waiting"));
  if (!session.streaming()) notes.emplace_back("no stream");
  if (!session.never_lends().empty())
    notes.push_back(absl::StrCat("never parks: ", session.never_lends()));
  return absl::StrJoin(notes, ", ");
}

// The page has no rows. That says something when it is the only one.
template <typename Response>
void SayNone(const Response& page, const char* sentence,
             const Table::Flow& flow, std::ostream& out) {
  if (!flow.begun && page.next_page_token().empty()) out << sentence << '\n';
}

}  // namespace

void PrintSessions(const v1::ListSessionsResponse& sessions, absl::Time now,
                   const Terminal& terminal, std::ostream& out,
                   Table::Flow* flow) {
  if (sessions.sessions().empty()) {
    SayNone(sessions, "no sessions", *flow, out);
    return;
  }
  Table table({{"session", Align::kRight},
               {"tenant"},
               {"program"},
               {"pid", Align::kRight},
               {"uid", Align::kRight},
               {"age", Align::kRight},
               {"gate"},
               {"leased", Align::kRight},
               {"evicted", Align::kRight},
               {"backed", Align::kRight},
               {"note"}});
  for (const v1::SessionInfo& session : sessions.sessions()) {
    table.AddRow({absl::StrCat(session.id()),
                  session.tenant(),
                  session.program(),
                  PidText(session.pid()),
                  absl::StrCat(session.uid()),
                  AgeText(session.since(), now),
                  GateCell(session),
                  {SizeText(session.leased_bytes()), Tone::kAccent},
                  BytesOrDash(session.evicted_bytes()),
                  BytesOrDash(session.backed_bytes()),
                  {SessionNotes(session), Tone::kWarning}});
  }
  table.Print(out, terminal, flow);
}

void PrintLeases(const v1::ListLeasesResponse& leases, absl::Time now,
                 const Terminal& terminal, std::ostream& out,
                 Table::Flow* flow) {
  if (leases.leases().empty()) {
    SayNone(leases, "no leases", *flow, out);
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
               {"age", Align::kRight},
               {"note"}});
  for (const v1::LeaseInfo& lease : leases.leases()) {
    table.AddRow({absl::StrCat(lease.id()),
                  lease.tenant(),
                  SessionText(lease.session_id()),
                  lease.device(),
                  {SizeText(lease.bytes()), Tone::kAccent},
                  absl::StrCat(lease.slabs()),
                  ContentsText(lease.contents()),
                  StateCell(lease.state()),
                  AgeText(lease.since(), now),
                  LeaseNotes(lease)});
  }
  table.Print(out, terminal, flow);
}

void PrintAudit(const v1::ListAuditResponse& audit, const Terminal& terminal,
                std::ostream& out, Table::Flow* flow) {
  if (audit.entries().empty()) {
    SayNone(audit, "no changes by operators yet", *flow, out);
    return;
  }
  Table table({{"at"}, {"operator"}, {"action"}, {"subject"}, {"detail"}});
  for (const v1::AuditEntry& entry : audit.entries()) {
    table.AddRow({TimeText(entry.at()),
                  entry.operator_name(),
                  {entry.action(), Tone::kStrong},
                  entry.subject(),
                  entry.detail()});
  }
  table.Print(out, terminal, flow);
}

}  // namespace gmb::cli
