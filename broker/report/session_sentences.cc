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
constexpr char kMore[] =
    "more sessions may never park, or wake often: `gmb session list`";

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

// Whether the planner spares one of its leases at least, by the time that this one
// took to come back; as far as they may still be looked at.
bool IsSpared(const State& state, const Session& session,
              quota::Nanoseconds gap, size_t* looks) {
  quota::LeaseRow row{.bytes = *session.leased_bytes, .usual_gap = gap};
  for (const quota::LeaseId id : *session.leases) {
    if (++*looks > kLooksASlice) break;
    row.restore_time = state.LeaseAt(id).move->restore_time;
    if (quota::IsRestless(row, state.options.planner)) return true;
  }
  return false;
}

// Empty: nothing keeps it from lending.
std::string SentenceOf(const State& state, const Session& session,
                       quota::Instant now, size_t* looks) {
  const std::string who = absl::StrCat(
      state.TenantAt(*session.tenant).policy.name, "'s session ", session.id,
      session.peer.pid == 0 ? ""
                            : absl::StrCat(" (pid ", session.peer.pid, ")"));
  if (!session.never_lends->empty())
    return absl::StrCat(who, " never parks: ", *session.never_lends);
  // One that is in use is not spared, and its gaps are no wakes.
  if (session.gate->Look(now) != quota::Gate::kParked) return "";
  const auto gap = session.gate->usual_gap();
  if (!gap.has_value() || !IsSpared(state, session, *gap, looks)) return "";
  return absl::StrCat(who, " wakes every ",
                      RoughText(absl::FromChrono(*gap), absl::Milliseconds(1)),
                      UseText(*session.gate),
                      ": memory of others is taken first");
}

// One answer's, with what may still be looked at for it.
class Sentences {
 public:
  Sentences(const State& state, quota::Instant now,
            v1::ExplainResponse* response)
      : state_(state), now_(now), response_(*response) {}

  // False: no more than this, which the answer says.
  [[nodiscard]] bool Add(const Session& session) {
    if (!Pass()) return false;
    const std::string sentence = SentenceOf(state_, session, now_, &looks_);
    if (sentence.empty()) return true;
    if (++said_ > kMostOfSessions) return SayMore();
    response_.add_findings(sentence);
    return true;
  }
  // The same of one that nothing is to be said of.
  [[nodiscard]] bool Pass() { return ++looks_ <= kLooksASlice || SayMore(); }

 private:
  bool SayMore() {
    response_.add_findings(kMore);
    return false;
  }

  const State& state_;
  const quota::Instant now_;
  v1::ExplainResponse& response_;
  size_t looks_ = 0;
  size_t said_ = 0;
};

}  // namespace

void AddSessionSentences(const State& state, const Tenant& tenant,
                         quota::Instant now, bool waits,
                         v1::ExplainResponse* response) {
  Sentences sentences(state, now, response);
  for (const uint64_t id : state.sessions->OfTenant(tenant.id)) {
    if (!sentences.Add(state.SessionAt(id))) return;
  }
  if (!waits) return;
  for (const auto& [id, session] : *state.sessions) {
    const bool others =
        session->tenant.has_value() && *session->tenant != tenant.id;
    if (others ? !sentences.Add(*session) : !sentences.Pass()) return;
  }
}

}  // namespace gmb::broker::report
