// Connections before their greeting: their time, and which makes room.
#include "broker/doors/pending_connections.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gmb::broker {

std::optional<uint64_t> PendingConnections::Add(uint64_t connection,
                                                uint64_t listener,
                                                uint64_t process,
                                                Time deadline) {
  entries_.push_back({connection, listener, process, deadline});
  if (entries_.size() <= limit_) return std::nullopt;
  const uint64_t victim = PickVictim();
  Remove(victim);
  return victim;
}

void PendingConnections::Remove(uint64_t connection) {
  const auto found = std::find_if(
      entries_.begin(), entries_.end(),
      [&](const Entry& entry) { return entry.connection == connection; });
  if (found != entries_.end()) entries_.erase(found);
}

std::vector<uint64_t> PendingConnections::TakeExpired(Time now) {
  std::vector<uint64_t> expired;
  while (!entries_.empty() && entries_.front().deadline <= now) {
    expired.push_back(entries_.front().connection);
    entries_.pop_front();
  }
  return expired;
}

std::optional<PendingConnections::Time> PendingConnections::NextDeadline()
    const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().deadline;
}

uint64_t PendingConnections::PickVictim() const {
  std::map<uint64_t, size_t> by_listener;
  std::map<std::pair<uint64_t, uint64_t>, size_t> by_process;
  for (const Entry& entry : entries_) {
    ++by_listener[entry.listener];
    ++by_process[{entry.listener, entry.process}];
  }
  // The first of equals, so the oldest.
  const auto heavier = [&](const Entry& a, const Entry& b) {
    return std::make_pair(by_listener[a.listener],
                          by_process[{a.listener, a.process}]) <
           std::make_pair(by_listener[b.listener],
                          by_process[{b.listener, b.process}]);
  };
  return std::max_element(entries_.begin(), entries_.end(), heavier)
      ->connection;
}

}  // namespace gmb::broker
