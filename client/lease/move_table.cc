// A lease leaves and comes back: which move of which lease is asked for.
#include "client/lease/move_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/wire.h"

namespace gmb::internal {

using v1::ClientMessage;

void MoveTable::Add(uint64_t lease_id, std::shared_ptr<MappedLease> lease) {
  const auto [it, added] = entries_.try_emplace(lease_id);
  Entry& entry = it->second;
  if (!added && entry.lease == nullptr) --unknown_;
  entry.lease = std::move(lease);
  if (entry.move != 0) Queue(lease_id, entry);
}

void MoveTable::Remove(uint64_t lease_id) {
  const auto it = entries_.find(lease_id);
  if (it == entries_.end()) return;
  if (it->second.lease == nullptr) --unknown_;
  entries_.erase(it);
}

void MoveTable::OnReleased(uint64_t lease_id) {
  const auto it = entries_.find(lease_id);
  if (it != entries_.end() && it->second.lease == nullptr) Remove(lease_id);
}

std::vector<std::shared_ptr<MappedLease>> MoveTable::Leases() const {
  std::vector<std::shared_ptr<MappedLease>> leases;
  for (const auto& [id, entry] : entries_) {
    if (entry.lease != nullptr) leases.push_back(entry.lease);
  }
  return leases;
}

bool MoveTable::Advance(Entry& entry, uint64_t move) {
  if (move <= entry.move) return false;
  entry.move = move;
  entry.map.reset();
  entry.answer.reset();
  entry.started = false;
  if (entry.slabs_move < move) entry.slabs = SlabSet();  // of nothing any more
  return true;
}

void MoveTable::Queue(uint64_t lease_id, Entry& entry) {
  if (entry.queued || entry.started) return;
  entry.queued = true;
  ready_.push_back(lease_id);
}

bool MoveTable::HasSlabs(const Entry& entry) {
  return entry.map.has_value() && entry.slabs_move == entry.move &&
         entry.slabs.complete();
}

absl::StatusOr<std::optional<ClientMessage>> MoveTable::OnEvict(
    const v1::Evict& evict) {
  if (evict.move() == 0) return ProtocolError("an Evict without a move");
  auto it = entries_.find(evict.lease_id());
  if (it == entries_.end()) {
    // Released, which ends it at the broker too; or its grant is on its way.
    if (unknown_ == kMostUnknown) DropOldestUnknown();
    it = entries_.try_emplace(evict.lease_id()).first;
    ++unknown_;
  }
  Entry& entry = it->second;
  if (Advance(entry, evict.move())) {
    if (entry.slabs_move == entry.move) {
      return ProtocolError("slabs of a move that is an Evict");
    }
    if (entry.lease != nullptr) Queue(evict.lease_id(), entry);
    return std::nullopt;
  }
  if (evict.move() < entry.move) return std::nullopt;
  if (entry.map.has_value()) {
    return ProtocolError("an Evict with the move of a Map");
  }
  return entry.answer;
}

absl::StatusOr<std::optional<ClientMessage>> MoveTable::OnMap(
    const v1::Map& map) {
  if (map.move() == 0) return ProtocolError("a Map without a move");
  const auto it = entries_.find(map.lease_id());
  // A lease that is to be mapped again was ours before: it was released since.
  if (it == entries_.end() || it->second.lease == nullptr) return std::nullopt;
  Entry& entry = it->second;
  // Looked at first: a move that was begun without its map would be taken for
  // an Evict by slabs that arrive before the session has ended.
  if (map.move() > entry.move && map.bytes() != entry.lease->size_bytes()) {
    return ProtocolError(absl::StrCat("a Map of ", map.bytes(),
                                      " bytes for a lease of ",
                                      entry.lease->size_bytes()));
  }
  if (Advance(entry, map.move())) {
    entry.map = map;
    GMB_RETURN_IF_ERROR(QueueIfComplete(map.lease_id(), entry));
    return std::nullopt;
  }
  if (map.move() < entry.move) return std::nullopt;
  if (!entry.map.has_value()) {
    return ProtocolError("a Map with the move of an Evict");
  }
  return entry.answer;
}

absl::Status MoveTable::OnSlabs(const v1::Slabs& frame,
                                std::vector<base::UniqueFd> fds) {
  GMB_RETURN_IF_ERROR(SlabSet::CheckFrame(frame, fds.size()));
  if (frame.move() == 0) return ProtocolError("slabs that nobody asked for");
  const auto it = entries_.find(frame.lease_id());
  if (it == entries_.end() || it->second.lease == nullptr)
    return absl::OkStatus();  // released; closed here
  Entry& entry = it->second;
  if (frame.move() < entry.move || frame.move() < entry.slabs_move)
    return absl::OkStatus();
  if (frame.move() == entry.move && !entry.map.has_value()) {
    return ProtocolError("slabs of a move that is an Evict");
  }
  if (frame.move() > entry.slabs_move) {
    entry.slabs_move = frame.move();
    entry.slabs = SlabSet();
  }
  if (entry.slabs.Has(frame)) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(entry.slabs.Add(frame, std::move(fds)));
  return QueueIfComplete(frame.lease_id(), entry);
}

absl::Status MoveTable::QueueIfComplete(uint64_t lease_id, Entry& entry) {
  if (!HasSlabs(entry)) return absl::OkStatus();
  absl::Status matches = entry.slabs.Matches(*entry.map);
  if (matches.ok()) Queue(lease_id, entry);
  return matches;
}

std::optional<MoveTable::Task> MoveTable::TakeTask() {
  while (!ready_.empty()) {
    const uint64_t lease_id = ready_.front();
    ready_.pop_front();
    const auto it = entries_.find(lease_id);
    if (it == entries_.end() || it->second.lease == nullptr) continue;
    Entry& entry = it->second;
    entry.queued = false;
    // A newer move may have taken the place of the one that was ready.
    const bool due = !entry.map.has_value() || HasSlabs(entry);
    if (!due || entry.started) continue;
    entry.started = true;
    Task task{.lease_id = lease_id,
              .move = entry.move,
              .lease = entry.lease,
              .is_map = entry.map.has_value()};
    if (task.is_map) {
      task.handles = entry.slabs.TakeHandles();
      task.slab_bytes = entry.slabs.slab_bytes();
    }
    return task;
  }
  return std::nullopt;
}

bool MoveTable::Done(const Task& task, const ClientMessage& answer) {
  const auto it = entries_.find(task.lease_id);
  if (it == entries_.end() || it->second.lease != task.lease) return false;
  if (it->second.move == task.move) it->second.answer = answer;
  return true;
}

void MoveTable::Clear() {
  ready_.clear();
  std::erase_if(entries_,
                [](const auto& it) { return it.second.lease == nullptr; });
  unknown_ = 0;
  for (auto& [id, entry] : entries_) {
    Entry empty;
    empty.lease = std::move(entry.lease);
    entry = std::move(empty);
  }
}

void MoveTable::DropOldestUnknown() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.lease != nullptr) continue;
    if (oldest == entries_.end() || it->second.move < oldest->second.move) {
      oldest = it;
    }
  }
  if (oldest == entries_.end()) return;
  entries_.erase(oldest);
  --unknown_;
}

}  // namespace gmb::internal
