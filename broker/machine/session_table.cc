// The sessions that are open, which hold the leases: found by id and by token.
#include "broker/machine/session_table.h"

#include <utility>

namespace gmb::broker {
namespace {

constexpr size_t kEndedClients = 1024;

}  // namespace

Session* SessionTable::Add(std::unique_ptr<Session> session) {
  const uint64_t id = session->id;
  SkipTo(id + 1);
  if (session->tenant.has_value()) {
    by_tenant_[*session->tenant].insert(id);
  } else {
    ++operators_;
  }
  by_token_.emplace(session->token, id);
  ++processes_[session->peer.pid];
  return sessions_.emplace(id, std::move(session)).first->second.get();
}

Placed<Session> SessionTable::Remove(uint64_t id) {
  const auto it = sessions_.find(id);
  Placed<Session> session = std::move(it->second);
  sessions_.erase(it);
  by_token_.erase(session->token);
  const auto process = processes_.find(session->peer.pid);
  if (--process->second == 0) processes_.erase(process);
  if (session->tenant.has_value()) {
    const auto its = by_tenant_.find(*session->tenant);
    its->second.erase(id);
    if (its->second.empty()) by_tenant_.erase(its);
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
  return it == by_token_.end() ? nullptr : Find(it->second);
}

const absl::btree_set<uint64_t>& SessionTable::OfTenant(
    quota::TenantId tenant) const {
  static const absl::btree_set<uint64_t> kNone;
  const auto its = by_tenant_.find(tenant);
  return its == by_tenant_.end() ? kNone : its->second;
}

}  // namespace gmb::broker
