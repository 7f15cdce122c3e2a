// The keeper at the broker's start, and all that the last broker has left
// there.
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "broker/daemon/daemon.h"
#include "broker/log/logging.h"
#include "ipc/open_files.h"

namespace gmb::broker {

absl::Status Daemon::OpenKeeping() {
  GMB_ASSIGN_OR_RETURN(disposer_, ipc::FdDisposer::Start());
  if (config_.keeper_socket.empty()) return absl::OkStatus();
  // The last broker has left up to as many fds as its limit allowed.
  GMB_RETURN_IF_ERROR(ipc::RaiseFdLimit().status());
  GMB_ASSIGN_OR_RETURN(keeping_, Keeping::Open(config_.keeper_socket,
                                               {.disposer = disposer_.get(),
                                                .events = &events_,
                                                .clock = &clock_}));
  slab_ids_ = keeping_->inheritance()->next_slab();
  return absl::OkStatus();
}

absl::Status Daemon::Keep(const FdPlan& plan) {
  if (keeping_ == nullptr) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(
      keeping_->BeginJournal(plan.max_handles, plan.max_sessions));
  return keeping_->KeepHostMemory(host_pool_ == nullptr ? -1
                                                        : host_pool_->fd());
}

void Daemon::Adopt(ImportedSlabs imported) {
  if (keeping_ == nullptr) return;
  not_adopted_ = core_->Adopt(
      keeping_->inheritance()->TakeAdoption(std::move(imported)), &adopted_);
  keeping_->LetGo();
  CountAdopted();
}

// Nobody is served yet, so no lease is counted twice.
void Daemon::CountAdopted() {
  v1::ListLeasesRequest request;
  do {
    const auto page = core_->Leases(request);
    if (!page.ok()) return;
    event_counts_->AddAdopted(*page);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
}

absl::Status Daemon::AdoptConnection(OpenedSession opened) {
  GMB_ASSIGN_OR_RETURN(KeptPeer peer,
                       keeping_->inheritance()->PeerOf(opened.id));
  admission_.Add(opened.id, {peer.origin, peer.tenant_directory},
                 ProcessOf(peer.pidfd.get(), peer.pid), opened.tenant);
  return handles_->Adopt({.socket = std::move(peer.socket),
                          .pidfd = std::move(peer.pidfd),
                          .origin = peer.origin,
                          .tenant_directory = std::move(peer.tenant_directory),
                          .opened = std::move(opened)});
}

// Before anybody else can connect: their gRPC connections are let in as those
// of sessions that have greeted.
void Daemon::AdoptConnections() {
  if (keeping_ == nullptr) return;
  std::set<uint64_t> all;
  for (OpenedSession& opened : adopted_) {
    const uint64_t session = opened.id;
    const absl::Status adopted = AdoptConnection(std::move(opened));
    if (adopted.ok()) {
      all.insert(session);
      continue;
    }
    admission_.Remove(session);
    core_->CloseSession(session, adopted.message());
  }
  adopted_.clear();
  keeping_->inheritance()->DropTheRest(all, std::exchange(not_adopted_, {}));
  keeping_->Watch();
}

}  // namespace gmb::broker
