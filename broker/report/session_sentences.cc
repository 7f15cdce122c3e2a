// Why sessions do not lend their memory, or are spared: for `gmb why`.
#include "broker/report/session_sentences.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/report/page.h"
#include "quota/planner.h"

namespace gmb::broker::report {
namespace {

constexpr size_t kMostOfSessions = 16;

// "2.5s", "40ms"; at least one `step`, where it is less than a second.
std::string RoughText(absl::Duration time, absl::Duration step) {
  if (time >= absl::Seconds(1)) step = absl::Milliseconds(100);
  return absl::FormatDuration(std::max(absl::Trunc(time, step), step));
}

std::string UseText(const SessionGate& gate) {
  const auto use = gate.usual_use();
  if (!use.has_value()) return "";
  const absl::Duration time = absl::FromChrono(*use);
  // As exact as the clock of those who end scopes.
  if (time < absl::Microseconds(1)) return " for less than 4ms";
  return absl::StrCat(" for ", RoughText(time, time < absl::Milliseconds(1)
                                                   ? absl::Microseconds(1)
                                                   : absl::Milliseconds(1)));
}

// Empty: nothing keeps it from lending.
std::string SentenceOf(const State& state, const Session& session,
                       quota::Instant now) {
  const std::string who = absl::StrCat(
      state.TenantAt(*session.tenant).policy.name, "'s session ", session.id,
      session.peer.pid == 0 ? ""
                            : absl::StrCat(" (pid ", session.peer.pid, ")"));
  if (!session.never_lends->empty())
    return absl::StrCat(who, " never parks: ", *session.never_lends);
  // One that is in use is not spared, and its gaps are no wakes.
  if (session.gate->Look(now) != quota::Gate::kParked) return "";
  const auto gap = session.gate->usual_gap();
  if (!gap.has_value()) return "";
  const quota::LeaseRow row{.bytes = *session.leased_bytes, .usual_gap = *gap};
  if (row.bytes == 0 || !quota::IsRestless(row, state.options.planner))
    return "";
  return absl::StrCat(who, " wakes every ",
                      RoughText(absl::FromChrono(*gap), absl::Milliseconds(1)),
                      UseText(*session.gate),
                      ": memory of others is taken first");
}

}  // namespace

void AddSessionSentences(const State& state, const Tenant& tenant,
                         quota::Instant now, bool waits,
                         v1::ExplainResponse* response) {
  size_t looks = 0;
  size_t sentences = 0;
  for (const bool own : {true, false}) {
    if (!own && !waits) break;
    for (const auto& [id, session] : *state.sessions) {
      if (++looks > kLooksASlice) return;
      if (!session->tenant.has_value()) continue;
      if ((*session->tenant == tenant.id) != own) continue;
      const std::string sentence = SentenceOf(state, *session, now);
      if (sentence.empty()) continue;
      if (++sentences > kMostOfSessions) {
        response->add_findings(
            "more sessions never park, or wake often: `gmb session list`");
        return;
      }
      response->add_findings(sentence);
    }
  }
}

}  // namespace gmb::broker::report
