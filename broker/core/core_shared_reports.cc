// What operators see of the sessions that wait to attach to a shared lease.
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"

namespace gmb::broker {
namespace {

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

}  // namespace

// A row for each that waits and, of a name, one sentence.
void Core::AddAttaching(const Tenant& tenant,
                        v1::ExplainResponse* response) const {
  const quota::Instant now = deps_.clock->Now();
  for (const SharedName* name : shared_names_.OfTenant(tenant.id)) {
    if (name->waiting.empty()) continue;
    v1::WaitingAttach shown;
    shown.set_share_name(name->name);
    const std::string what = ExplainName(*name, &shown);
    for (const PendingAttach& attach : name->waiting) {
      shown.set_session_id(attach.session);
      *shown.mutable_waited() = ToProto(now - attach.asked);
      *shown.mutable_remaining() = ToProto(attach.deadline - now);
      *response->add_attaching() = shown;
    }
    response->add_findings(absl::StrCat(Waiters(name->waiting.size()),
                                        " for the shared lease ", name->name,
                                        ": ", what));
  }
}

// What those who attach to it wait for and on whom, and what an operator can
// do.
std::string Core::ExplainName(const SharedName& name,
                              v1::WaitingAttach* shown) const {
  if (name.lease.has_value())
    return ExplainReturn(*leases_.at(*name.lease), shown);
  const std::string writer = SessionText(*sessions_.at(name.writer));
  shown->set_on_session_id(name.writer);
  if (pending_.contains(name.request)) {
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

std::string Core::ExplainReturn(const Lease& lease,
                                v1::WaitingAttach* shown) const {
  shown->set_waits_for(v1::WaitingAttach::RETURN);
  if (IsAskedBack(lease)) {
    const uint64_t session = restoring_.at(*lease.asked_back).session;
    shown->set_on_session_id(session);
    return absl::StrCat("it is evicted, and session ", session,
                        " asks it back, with a request for memory that is "
                        "shown here as well");
  }
  if (lease.awaits_pause) {
    return "the sessions that have it are being paused so that its memory can "
           "be taken; once that is over it is evicted and asked back, or stays";
  }
  if (lease.residence == Residence::kEvicting)
    return "it is leaving the device, and will be asked back then";
  return "it is on its way back to the device";
}

}  // namespace gmb::broker
