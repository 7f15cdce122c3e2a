#include "broker/machine/session_table.h"

#include <utility>

namespace gmb::broker {
namespace {

constexpr size_t kEndedClients = 1024;

}  // namespace

Session* SessionTable::Add(std::unique_ptr<Session> session) {
  session->id = next_id_++;
  if (!session->tenant.has_value()) ++operators_;
  by_token_.emplace(session->token, session->id);
  ++processes_[session->peer.pid];
  const uint64_t id = session->id;
  return sessions_.emplace(id, std::move(session)).first->second.get();
}

std::unique_ptr<Session> SessionTable::Remove(uint64_t id) {
  const auto it = sessions_.find(id);
  std::unique_ptr<Session> session = std::move(it->second);
  sessions_.erase(it);
  by_token_.erase(session->token);
  const auto process = processes_.find(session->peer.pid);
  if (--process->second == 0) processes_.erase(process);
  if (session->tenant.has_value()) {
    ended_clients_.push_back(session->peer.pid);
    if (ended_clients_.size() > kEndedClients) ended_clients_.pop_front();
  } else {
    --operators_;
  }
  return session;
}

Session* SessionTable::Find(uint64_t id) const {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

const Session* SessionTable::FindAfter(uint64_t id) const {
  const auto it = sessions_.upper_bound(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

const Session* SessionTable::WithToken(absl::string_view token) const {
  const auto it = by_token_.find(token);
  return it == by_token_.end() ? nullptr : at(it->second);
}

}  // namespace gmb::broker
