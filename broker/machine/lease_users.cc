// The users of a lease: its session or, of a shared one, all who are attached.
#include "broker/machine/lease_users.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ipc/random.h"

namespace gmb::broker {

std::vector<Session*> MembersOf(const State& state, Session* session) {
  if (session->group->empty()) return {session};
  std::vector<Session*> members;
  for (const uint64_t id :
       state.groups->Members(*session->tenant, *session->group)) {
    members.push_back(&state.SessionAt(id));
  }
  return members;
}

std::vector<uint64_t> IdsOf(const std::vector<Session*>& sessions) {
  std::vector<uint64_t> ids;
  ids.reserve(sessions.size());
  for (const Session* session : sessions) ids.push_back(session->id);
  return ids;
}

bool GroupIsOn(const State& state, const Session& session) {
  if (session.gate == nullptr || !session.gate->on()) return false;
  return session.group->empty() ||
         state.groups->IsOn(*session.tenant, *session.group);
}

quota::GroupId GroupOf(const State& state, const Session& session) {
  if (session.group->empty()) return {};
  return {*state.groups->Members(*session.tenant, *session.group).begin()};
}

Lease* FindLease(const State& state, const Session& session, uint64_t lease) {
  const quota::LeaseId id{lease};
  return session.leases->contains(id) ? &state.LeaseAt(id) : nullptr;
}

Lease* FindExported(const State& state, const Session& session,
                    const v1::Exported& exported) {
  const auto found = state.leases->find(quota::LeaseId{exported.lease_id()});
  if (found == state.leases->end()) return nullptr;
  Lease* lease = found->second.get();
  const bool is_so =
      lease->tenant == *session.tenant && lease->exported() &&
      !lease->life->doomed &&
      ipc::ConstantTimeEquals(lease->sharing->export_key, exported.key());
  return is_so ? lease : nullptr;
}

bool AllClosed(const State& state, const Lease& lease) {
  const std::vector<Mapping>& users = lease.move->mappings;
  return std::all_of(users.begin(), users.end(), [&](const Mapping& user) {
    return state.SessionAt(user.session).gate->closed();
  });
}

std::vector<Session*> UsersOf(const State& state, const Lease& lease) {
  const std::vector<Mapping>& mappings = lease.move->mappings;
  if (mappings.size() == 1)
    return MembersOf(state, &state.SessionAt(mappings.front().session));
  std::vector<Session*> users;
  absl::flat_hash_set<uint64_t> seen;
  for (const Mapping& mapping : mappings) {
    // A session whose group has been added is in it.
    if (seen.contains(mapping.session)) continue;
    for (Session* member :
         MembersOf(state, &state.SessionAt(mapping.session))) {
      if (seen.insert(member->id).second) users.push_back(member);
    }
  }
  return users;
}

quota::Gate GateOver(const State& state, const Lease& lease, quota::Instant now,
                     GroupGates* groups) {
  quota::Gate* known = nullptr;
  if (!lease.sharing->shared && lease.move->mappings.size() == 1) {
    const Session& holder =
        state.SessionAt(lease.move->mappings.front().session);
    if (holder.group->empty()) return holder.gate->Look(now);
    if (groups != nullptr) {
      const auto [entry, fresh] = groups->known.try_emplace(
          GroupOf(state, holder), quota::Gate::kClosed);
      if (!fresh) return std::min(entry->second, holder.gate->Look(now));
      known = &entry->second;
    }
  }
  quota::Gate least = lease.move->mappings.empty() ? quota::Gate::kParked
                                                   : quota::Gate::kClosed;
  for (const Session* user : UsersOf(state, lease)) {
    least = std::min(least, user->gate->Look(now));
    if (known != nullptr) ++groups->looks;
  }
  if (known != nullptr) *known = least;
  return least;
}

bool WantsIn(const State& state, Session* session) {
  const std::vector<Session*> members = MembersOf(state, session);
  return std::any_of(members.begin(), members.end(), [](const Session* m) {
    return !m->waking->restores.empty();
  });
}

uint32_t RestoreAttempts(const State& state, const Lease& lease) {
  uint32_t attempts = 0;
  for (const Mapping& mapping : lease.move->mappings) {
    attempts = std::max(
        attempts, state.SessionAt(mapping.session).waking->restore_attempts);
  }
  const SharedName* name = state.shared_names->Of(lease.tenant, lease.request);
  const bool named = lease.sharing->shared && name != nullptr;
  return named ? std::max(attempts, name->attempts) : attempts;
}

std::vector<quota::LeaseId> SharedOf(const State& state,
                                     quota::TenantId tenant) {
  std::vector<quota::LeaseId> leases;
  for (auto it = state.shared_leases->lower_bound({tenant, quota::LeaseId{}});
       it != state.shared_leases->end() && it->first == tenant; ++it) {
    leases.push_back(it->second);
  }
  return leases;
}

bool IsAskedBack(const State& state, const Lease& lease) {
  return lease.asked_back->has_value() &&
         state.restoring->contains(**lease.asked_back);
}

}  // namespace gmb::broker
