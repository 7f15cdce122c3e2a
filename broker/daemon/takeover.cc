// Sessions that the last broker has left, and their connections.
#include "broker/daemon/takeover.h"

#include <cstdint>
#include <set>
#include <utility>

#include "base/status_macros.h"

namespace gmb::broker {

void Takeover::AdoptSessions(ImportedSlabs imported,
                             metrics::EventCounts* counts) {
  not_adopted_ = core_->Adopt(
      keeping_->inheritance()->TakeAdoption(std::move(imported)), &adopted_);
  keeping_->LetGo();
  CountLeases(counts);
}

// Nobody is served yet, so no lease is counted twice.
void Takeover::CountLeases(metrics::EventCounts* counts) const {
  v1::ListLeasesRequest request;
  do {
    const auto page = core_->Leases(request);
    if (!page.ok()) return;
    counts->AddAdopted(*page);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
}

absl::Status Takeover::AdoptConnection(OpenedSession opened,
                                       Admission* admission,
                                       HandleServer* handles) {
  GMB_ASSIGN_OR_RETURN(KeptPeer peer,
                       keeping_->inheritance()->PeerOf(opened.id));
  admission->Add(opened.id, {peer.origin, peer.tenant_directory},
                 ProcessOf(peer.pidfd.get(), peer.pid), opened.tenant);
  return handles->Adopt({.socket = std::move(peer.socket),
                         .pidfd = std::move(peer.pidfd),
                         .origin = peer.origin,
                         .tenant_directory = std::move(peer.tenant_directory),
                         .opened = std::move(opened)});
}

void Takeover::AdoptConnections(Admission* admission, HandleServer* handles) {
  std::set<uint64_t> all;
  for (OpenedSession& opened : adopted_) {
    const uint64_t session = opened.id;
    const absl::Status adopted =
        AdoptConnection(std::move(opened), admission, handles);
    if (adopted.ok()) {
      all.insert(session);
      continue;
    }
    admission->Remove(session);
    core_->CloseSession(session, adopted.message());
  }
  adopted_.clear();
  keeping_->inheritance()->DropTheRest(all, std::exchange(not_adopted_, {}));
  keeping_->Watch();
}

}  // namespace gmb::broker
