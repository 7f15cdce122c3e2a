// Who uses a lease: its session or, of a shared one, all who are attached.
#include "broker/machine/lease_users.h"

#include <algorithm>

namespace gmb::broker {

std::vector<Session*> UsersOf(const State& state, const Lease& lease) {
  std::vector<Session*> users;
  for (const Mapping& mapping : lease.mappings) {
    for (Session* member :
         state.groups.Members(&state.SessionAt(mapping.session))) {
      if (std::find(users.begin(), users.end(), member) == users.end())
        users.push_back(member);
    }
  }
  return users;
}

quota::Gate GateOver(const State& state, const Lease& lease,
                     quota::Instant now) {
  if (!lease.shared && lease.mappings.size() == 1) {
    const Session& holder = state.SessionAt(lease.mappings.front().session);
    if (holder.group.empty()) return holder.gate->Look(now);
  }
  quota::Gate least =
      lease.mappings.empty() ? quota::Gate::kParked : quota::Gate::kClosed;
  for (const Session* user : UsersOf(state, lease))
    least = std::min(least, user->gate->Look(now));
  return least;
}

bool WantsIn(const State& state, Session* session) {
  const std::vector<Session*> members = state.groups.Members(session);
  return std::any_of(members.begin(), members.end(),
                     [](const Session* m) { return !m->restores.empty(); });
}

uint32_t RestoreAttempts(const State& state, const Lease& lease) {
  uint32_t attempts = 0;
  for (const Mapping& mapping : lease.mappings) {
    attempts =
        std::max(attempts, state.SessionAt(mapping.session).restore_attempts);
  }
  const SharedName* name = state.shared_names.Of(lease.tenant, lease.request);
  const bool named = lease.shared && name != nullptr;
  return named ? std::max(attempts, name->attempts) : attempts;
}

std::vector<quota::LeaseId> SharedOf(const State& state,
                                     quota::TenantId tenant) {
  std::vector<quota::LeaseId> leases;
  for (auto it = state.shared_leases.lower_bound({tenant, quota::LeaseId{}});
       it != state.shared_leases.end() && it->first == tenant; ++it) {
    leases.push_back(it->second);
  }
  return leases;
}

bool IsAskedBack(const State& state, const Lease& lease) {
  return lease.asked_back.has_value() &&
         state.restoring.contains(*lease.asked_back);
}

}  // namespace gmb::broker
