// The sessions that wait to attach to a shared lease.
#include "broker/report/attaching.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "broker/machine/recalls.h"
#include "broker/machine/wire_form.h"

namespace gmb::broker::report {
namespace {

// How many of those that wait are listed.
constexpr int kMostAttaches = 1000;
constexpr size_t kMostNames = 100;

std::string SessionText(const Session& session) {
  std::string pid;  // unknown, when it is of another PID namespace
  if (session.peer.pid > 0) pid = absl::StrCat(", pid ", session.peer.pid);
  return absl::StrCat("session ", session.id, " (", session.peer.program, pid,
                      ")");
}

std::string Waiters(size_t attaches) {
  return attaches == 1 ? "1 Attach waits"
                       : absl::StrCat(attaches, " Attaches wait");
}

std::string ExplainReturn(const State& state, const Lease& lease,
                          v1::WaitingAttach* shown) {
  shown->set_waits_for(v1::WaitingAttach::RETURN);
  if (const Returning* asked = ReturningOf(state, lease)) {
    const uint64_t session = asked->session;
    shown->set_on_session_id(session);
    return absl::StrCat("it is evicted, and session ", session,
                        " asks it back, with a request for memory that is "
                        "shown here as well");
  }
  if (*lease.awaits_pause) {
    return "the sessions that have it are being paused so that its memory can "
           "be taken; once that is over it is evicted and asked back, or stays";
  }
  if (lease.move->residence == Residence::kEvicting)
    return "it is leaving the device, and will be asked back then";
  return "it is on its way back to the device";
}

// Says what those who attach to it wait for and on whom, and what an operator
// can do.
std::string ExplainName(const State& state, const SharedName& name,
                        v1::WaitingAttach* shown) {
  if (name.lease.has_value())
    return ExplainReturn(state, state.LeaseAt(*name.lease), shown);
  const std::string writer = SessionText(state.SessionAt(name.writer));
  shown->set_on_session_id(name.writer);
  if (state.pending->contains(name.request)) {
    shown->set_waits_for(v1::WaitingAttach::MEMORY);
    return absl::StrCat("its writer, ", writer,
                        ", waits for the memory itself, with a request that "
                        "is shown here as well");
  }
  shown->set_waits_for(v1::WaitingAttach::SEAL);
  return absl::StrCat("its writer, ", writer,
                      ", has not sealed it yet; if that one hangs, end its "
                      "process: who waits is told so, and can fill it");
}

}  // namespace

// A row for each that waits and, of a name, one sentence: as many as fit into
// an answer, and a sentence that counts the rest.
void AddAttaching(const State& state, const Tenant& tenant, quota::Instant now,
                  v1::ExplainResponse* response) {
  size_t names_left_out = 0;
  size_t rows_left_out = 0;
  size_t names = 0;
  for (const SharedName* name : state.shared_names->OfTenant(tenant.id)) {
    if (name->waiting.empty()) continue;
    if (++names > kMostNames) {
      ++names_left_out;
      rows_left_out += name->waiting.size();
      continue;
    }
    v1::WaitingAttach shown;
    shown.set_share_name(name->name);
    const std::string what = ExplainName(state, *name, &shown);
    for (const auto& [arrival, attach] : name->waiting) {
      if (response->attaching_size() == kMostAttaches) {
        ++rows_left_out;
        continue;
      }
      shown.set_session_id(attach.session);
      *shown.mutable_waited() = ToProto(now - attach.asked);
      *shown.mutable_remaining() = ToProto(attach.deadline - now);
      *response->add_attaching() = shown;
    }
    response->add_findings(absl::StrCat(Waiters(name->waiting.size()),
                                        " for the shared lease ", name->name,
                                        ": ", what));
  }
  if (rows_left_out == 0) return;
  response->add_findings(
      absl::StrCat(rows_left_out, " more Attaches wait that are not listed, ",
                   names_left_out, " shared leases are not told of"));
}

}  // namespace gmb::broker::report
