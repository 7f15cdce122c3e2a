// A broker takes over: what the last one has left, piece by piece, and which
// piece is in hand.
#include "broker/daemon/inheritance.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "broker/daemon/kept_entry.h"
#include "broker/log/logging.h"
#include "ipc/gate_page.h"

namespace gmb::broker {
namespace {

void WarnOfNotAdopted(uint64_t session, absl::string_view why) {
  LogEvent(LogLevel::kWarning, "session_not_adopted",
           {{"session", session}, {"message", why}});
}

}  // namespace

void Inheritance::CountNotAdopted(uint64_t session, absl::string_view why) {
  ++not_adopted_;
  WarnOfNotAdopted(session, why);
}

// A slab that no record names was ready, returned, or on its way: it is made
// anew. Its memory is to be free before the devices are looked at.
absl::Status Inheritance::AdoptSlabs(RemoteKeeper* slabs) {
  std::set<SlabId> recorded;  // slabs of leases
  std::map<SlabId, uint64_t> leases;
  for (const LeaseRecord& lease : left_.records.leases) {
    for (const SlabRecord& slab : lease.slabs) {
      recorded.insert(slab.id);
      leases.emplace(slab.id, lease.id);
      const auto kept = left_.slabs.find(slab.id);
      if (kept != left_.slabs.end())
        GMB_RETURN_IF_ERROR(slabs->Adopt(kept->second));
    }
  }
  slabs->SetOnGet([this, of = std::move(leases)](SlabId slab) {
    const auto lease = of.find(slab);
    if (lease != of.end())
      deps_.in_hand->Take(RecordKind::kLease, lease->second);
  });
  next_slab_ = 1;
  if (!recorded.empty()) next_slab_ = *recorded.rbegin() + 1;
  if (!left_.slabs.empty())
    next_slab_ = std::max(next_slab_, left_.slabs.rbegin()->first + 1);
  for (auto slab = left_.slabs.begin(); slab != left_.slabs.end();) {
    if (recorded.count(slab->first) > 0) {
      ++slab;
      continue;
    }
    RemoveKept(slab->second.key, deps_.client);
    slab = left_.slabs.erase(slab);
  }
  return absl::OkStatus();
}

KeptSlabs Inheritance::SlabsByDevice() const {
  KeptSlabs by_device;
  for (const LeaseRecord& lease : left_.records.leases) {
    std::vector<SlabRecord>& its = by_device[lease.device].slabs;
    its.insert(its.end(), lease.slabs.begin(), lease.slabs.end());
  }
  // Where nobody is left, what is free now is the truth.
  if (left_.records.sessions.empty() && left_.records.leases.empty())
    return by_device;
  for (const PoolRecord& pool : left_.records.pools)
    by_device[pool.device].baseline_bytes = pool.baseline_bytes;
  return by_device;
}

absl::StatusOr<HostMemory> Inheritance::HostMemoryFor(HostMemory asked) const {
  if (left_.host == nullptr) return asked;
  struct stat info {};
  if (::fstat(left_.host->get(), &info) != 0)
    return absl::ErrnoToStatus(errno, "cannot look at the kept host pool");
  const auto size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  if (size != asked.bytes && !asked.by_default) {
    const bool used =
        std::any_of(left_.records.leases.begin(), left_.records.leases.end(),
                    [](const LeaseRecord& lease) { return lease.has_room; });
    if (!used) return asked;
    LogEvent(LogLevel::kWarning, "host_pool_kept",
             {{"bytes", size},
              {"message",
               "the host pool has contents, and keeps the size that it had: "
               "start the broker again without clients for the new one"}});
  }
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, DuplicateKept(left_.host->get()));
  asked.kept = std::move(fd);
  asked.bytes = size;
  if (asked.by_default) asked.note = "as the last broker left it";
  return asked;
}

Adoption Inheritance::TakeAdoption(ImportedSlabs imported) {
  Adoption adoption;
  adoption.takes_session = [this](const SessionRecord& session) {
    if (session.id == 0) return deps_.in_hand->LetGo();
    deps_.in_hand->Take(RecordKind::kSession, session.id);
  };
  adoption.takes_lease = [this](const LeaseRecord& lease) {
    deps_.in_hand->Take(RecordKind::kLease, lease.id);
  };
  adoption.head = left_.records.head;
  adoption.pools = std::move(left_.records.pools);
  adoption.leases = std::move(left_.records.leases);
  for (SessionRecord& record : left_.records.sessions) {
    deps_.in_hand->Take(RecordKind::kSession, record.id);
    const auto kept = left_.sessions.find(record.id);
    if (kept == left_.sessions.end()) {
      CountNotAdopted(record.id, "the keeper has no connection");
      continue;
    }
    peers_[record.id] = {.socket = {},
                         .pidfd = nullptr,
                         .origin = record.origin,
                         .tenant_directory = record.tenant_directory,
                         .pid = record.pid};
    absl::StatusOr<ipc::GatePage> page = patience_.Do(
        [&] { return ipc::GatePage::Map(kept->second.gate_page->get()); });
    if (!page.ok()) {
      CountNotAdopted(record.id, page.status().message());
      continue;
    }
    auto owner = std::make_shared<ipc::GatePage>(*std::move(page));
    std::shared_ptr<ipc::GateCells> cells(owner, &owner->cells());
    adoption.sessions.push_back({.record = std::move(record),
                                 .pidfd = kept->second.pidfd,
                                 .gate = std::move(cells)});
  }
  deps_.in_hand->LetGo();
  for (const auto& [id, slab] : imported) imported_.insert(id);
  adoption.slabs = std::move(imported);
  return adoption;
}

absl::StatusOr<KeptPeer> Inheritance::PeerOf(uint64_t session) {
  deps_.in_hand->Take(RecordKind::kSession, session);
  const auto peer = peers_.find(session);
  const auto kept = left_.sessions.find(session);
  if (peer == peers_.end() || kept == left_.sessions.end())
    return absl::NotFoundError("its connection was not kept");
  GMB_ASSIGN_OR_RETURN(base::UniqueFd socket, patience_.Do([&] {
    return DuplicateKept(kept->second.socket->get());
  }));
  return KeptPeer{.socket = std::move(socket),
                  .pidfd = kept->second.pidfd,
                  .origin = peer->second.origin,
                  .tenant_directory = peer->second.tenant_directory,
                  .pid = peer->second.pid};
}

void Inheritance::DropTheRest(const std::set<uint64_t>& adopted,
                              const std::vector<NotAdopted>& not_adopted) {
  deps_.in_hand->LetGo();
  for (const NotAdopted& one : not_adopted)
    CountNotAdopted(one.session, one.why);
  for (const auto& [id, session] : left_.sessions) {
    if (adopted.count(id) > 0) continue;
    if (const auto refused = left_.refused.find(id);
        refused != left_.refused.end()) {
      ++not_adopted_;
      LogEvent(LogLevel::kWarning, "session_not_adopted",
               {{"tenant", refused->second.tenant},
                {"session", id},
                {"message", refused->second.why}});
    } else if (peers_.count(id) == 0) {
      WarnOfNotAdopted(id,
                       "the journal has no record of it: it had ended, or a "
                       "full journal had no room for all that it has");
    }
    HangUp(id, session);
  }
  for (const auto& [id, kept] : left_.slabs) {
    if (imported_.count(id) == 0) RemoveKept(kept.key, deps_.client);
  }
  if (!left_.empty()) {
    LogEvent(LogLevel::kInfo, "adopted",
             {{"sessions", adopted.size()},
              {"slabs", imported_.size()},
              {"took_seconds", deps_.clock->WallTime() - since_}});
  }
  peers_.clear();
  left_ = {};
  deps_.in_hand->End();
}

void Inheritance::HangUp(uint64_t session, const KeptSession& kept) const {
  // First: the keeper's duplicate would hide a close.
  ::shutdown(kept.socket->get(), SHUT_RDWR);
  const absl::Status ended = deps_.sessions->End(session);
  if (!ended.ok()) WarnOfNotRemoved(KeptSessions::KeyOf(session), ended);
}

}  // namespace gmb::broker
