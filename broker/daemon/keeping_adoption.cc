// A broker takes over: what the last one has left, piece by piece, and which
// piece is in hand.
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "broker/daemon/keeping.h"
#include "broker/log/logging.h"
#include "ipc/gate_page.h"

namespace gmb::broker {
namespace {

void WarnOfNotAdopted(uint64_t session, absl::string_view why) {
  LogEvent(LogLevel::kWarning, "session_not_adopted",
           {{"session", session}, {"message", why}});
}

}  // namespace

SharedFd Keeping::TakeOut(absl::string_view key, std::vector<Kept>* all) {
  SharedFd last;
  std::erase_if(*all, [&](const Kept& kept) {
    if (kept.key != key) return false;
    if (kept.fds.size() == 1) last = kept.fds[0];
    return true;
  });
  return last;
}

void Keeping::BeginCopyMark() {
  const std::string key(CopyMark::kKey);
  Remove(key);
  absl::StatusOr<std::unique_ptr<CopyMark>> mark = CopyMark::Create();
  absl::Status put = mark.status();
  if (mark.ok()) {
    absl::StatusOr<base::UniqueFd> fd = Duplicate((*mark)->fd());
    put = fd.ok() ? client_->Put({.key = key, .fds = {Share(*std::move(fd))}})
                  : fd.status();
  }
  // Then the next broker copies what has ended this one, and ends too.
  if (!put.ok())
    return LogEvent(LogLevel::kWarning, "not_kept",
                    {{"message", put.message()}});
  copy_mark_ = *std::move(mark);
  memory_errors_.emplace(copy_mark_.get());
}

void Keeping::BeginMarks(std::vector<Kept>* all) {
  const std::string key(AdoptionMarks::kKey);
  absl::StatusOr<std::unique_ptr<AdoptionMarks>> marks =
      AdoptionMarks::Begin(TakeOut(key, all));
  absl::Status put = marks.status();
  if (marks.ok()) {
    marks_ = *std::move(marks);
    out_of_memory_.emplace(marks_.get());
    if (!marks_->is_new()) return;
    Remove(key);
    absl::StatusOr<base::UniqueFd> fd = Duplicate(marks_->fd());
    put = fd.ok() ? client_->Put({.key = key, .fds = {Share(*std::move(fd))}})
                  : fd.status();
  }
  // Then a record that ends this process is not known by the next one.
  if (!put.ok())
    LogEvent(LogLevel::kWarning, "not_kept", {{"message", put.message()}});
}

void Keeping::CountNotAdopted(uint64_t session, absl::string_view why) {
  ++not_adopted_;
  WarnOfNotAdopted(session, why);
}

void Keeping::LetGo() {
  if (marks_ != nullptr) marks_->LetGo();
}

void Keeping::Takes(RecordKind kind, uint64_t id) const {
  if (marks_ != nullptr) marks_->Take(AdoptionMarks::Step::kTaking, {kind, id});
}

// A slab that no record names was ready, returned, or on its way: it is made
// anew. Its memory is to be free before the devices are looked at.
absl::Status Keeping::AdoptSlabs() {
  std::map<SlabId, uint64_t> leases;
  for (const LeaseRecord& lease : left_.records.leases) {
    for (const SlabRecord& slab : lease.slabs) {
      recorded_.insert(slab.id);
      leases.emplace(slab.id, lease.id);
      const auto kept = left_.slabs.find(slab.id);
      if (kept != left_.slabs.end())
        GMB_RETURN_IF_ERROR(slabs_.Adopt(kept->second));
    }
  }
  slabs_.SetOnGet([this, of = std::move(leases)](SlabId slab) {
    const auto lease = of.find(slab);
    if (lease != of.end()) Takes(RecordKind::kLease, lease->second);
  });
  next_slab_ = 1;
  if (!recorded_.empty()) next_slab_ = *recorded_.rbegin() + 1;
  if (!left_.slabs.empty())
    next_slab_ = std::max(next_slab_, left_.slabs.rbegin()->first + 1);
  for (auto slab = left_.slabs.begin(); slab != left_.slabs.end();) {
    if (recorded_.count(slab->first) > 0) {
      ++slab;
      continue;
    }
    Remove(slab->second.key);
    slab = left_.slabs.erase(slab);
  }
  return absl::OkStatus();
}

Adoption Keeping::TakeAdoption(ImportedSlabs imported) {
  Adoption adoption;
  adoption.takes_session = [this](const SessionRecord& session) {
    if (session.id == 0) return LetGo();
    Takes(RecordKind::kSession, session.id);
  };
  adoption.takes_lease = [this](const LeaseRecord& lease) {
    Takes(RecordKind::kLease, lease.id);
  };
  adoption.head = left_.records.head;
  adoption.pools = std::move(left_.records.pools);
  adoption.leases = std::move(left_.records.leases);
  for (SessionRecord& record : left_.records.sessions) {
    Takes(RecordKind::kSession, record.id);
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
  LetGo();
  for (const auto& [id, slab] : imported) imported_.insert(id);
  adoption.slabs = std::move(imported);
  return adoption;
}

absl::StatusOr<KeptPeer> Keeping::PeerOf(uint64_t session) const {
  Takes(RecordKind::kSession, session);
  const auto peer = peers_.find(session);
  const auto kept = left_.sessions.find(session);
  if (peer == peers_.end() || kept == left_.sessions.end())
    return absl::NotFoundError("its connection was not kept");
  GMB_ASSIGN_OR_RETURN(base::UniqueFd socket, patience_.Do([&] {
    return Duplicate(kept->second.socket->get());
  }));
  return KeptPeer{.socket = std::move(socket),
                  .pidfd = kept->second.pidfd,
                  .origin = peer->second.origin,
                  .tenant_directory = peer->second.tenant_directory,
                  .pid = peer->second.pid};
}

void Keeping::DropTheRest(const std::set<uint64_t>& adopted,
                          const std::vector<NotAdopted>& not_adopted) {
  LetGo();
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
    // First: the keeper's duplicate would hide a close.
    ::shutdown(session.socket->get(), SHUT_RDWR);
    EndSession(id);
  }
  for (const auto& [id, kept] : left_.slabs) {
    if (imported_.count(id) == 0) Remove(kept.key);
  }
  if (!left_.empty()) {
    LogEvent(LogLevel::kInfo, "adopted",
             {{"sessions", adopted.size()},
              {"slabs", imported_.size()},
              {"took_seconds", deps_.clock->WallTime() - greeted_}});
  }
  peers_.clear();
  left_ = {};
  out_of_memory_.reset();
  marks_.reset();
  Remove(std::string(AdoptionMarks::kKey));
}

}  // namespace gmb::broker
