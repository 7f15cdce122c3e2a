// Who uses a lease: its session or, of a shared one, all who are attached.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"

namespace gmb::broker {

// With the groups that they belong to, each once.
std::vector<Session*> Core::UsersOf(const Lease& lease) const {
  std::vector<Session*> users;
  for (const Mapping& mapping : lease.mappings) {
    for (Session* member : groups_.Members(sessions_.at(mapping.session))) {
      if (std::find(users.begin(), users.end(), member) == users.end())
        users.push_back(member);
    }
  }
  return users;
}

// The least parked of its users' gates.
quota::Gate Core::GateOver(const Lease& lease, quota::Instant now) const {
  quota::Gate least =
      lease.mappings.empty() ? quota::Gate::kParked : quota::Gate::kClosed;
  for (const Session* user : UsersOf(lease))
    least = std::min(least, user->gate->Look(now));
  return least;
}

void Core::AdvanceUsers(Lease* lease, Afterwards* after) {
  const quota::LeaseId id = lease->id;
  AdvanceUsersOf({&id, 1}, after);
}

// Each user once, however many of the leases it uses: that looks at all of its
// own.
void Core::AdvanceUsersOf(absl::Span<const quota::LeaseId> leases,
                          Afterwards* after) {
  std::vector<uint64_t> users;
  absl::flat_hash_set<uint64_t> seen;
  for (const quota::LeaseId id : leases) {
    const auto lease = leases_.find(id);
    if (lease == leases_.end()) continue;
    for (const Mapping& mapping : lease->second->mappings) {
      if (seen.insert(mapping.session).second) users.push_back(mapping.session);
    }
  }
  for (const uint64_t user : users) {
    if (Session* session = sessions_.Find(user)) AdvanceRestore(session, after);
  }
  for (const quota::LeaseId id : leases) {
    const auto still = leases_.find(id);
    if (still != leases_.end()) ServeAttaches(still->second.get(), after);
  }
}

void Core::AnswerUsers(Lease* lease, const absl::Status& status,
                       Afterwards* after) {
  for (Session* user : UsersOf(*lease)) AnswerRestores(user, status, after);
  const SharedName* name = shared_names_.Of(lease->tenant, lease->request);
  if (lease->shared && name != nullptr)
    RefuseAttaches(shared_names_.StopAllWaiting(*name), status, after);
}

// Whether a scope of the session, or of its group, waits to be let in.
bool Core::WantsIn(Session* session) const {
  const std::vector<Session*> members = groups_.Members(session);
  return std::any_of(members.begin(), members.end(),
                     [](const Session* m) { return !m->restores.empty(); });
}

// Since the last of them was answered.
uint32_t Core::RestoreAttempts(const Lease& lease) const {
  uint32_t attempts = 0;
  for (const Mapping& mapping : lease.mappings) {
    attempts =
        std::max(attempts, sessions_.at(mapping.session)->restore_attempts);
  }
  const SharedName* name = shared_names_.Of(lease.tenant, lease.request);
  const bool named = lease.shared && name != nullptr;
  return named ? std::max(attempts, name->attempts) : attempts;
}

bool Core::IsAskedBack(const Lease& lease) const {
  return lease.asked_back.has_value() && restoring_.contains(*lease.asked_back);
}

// A Restore that shared leases were named in has come to nothing: who else
// needs them asks for himself.
void Core::AdvanceOthers(quota::RequestId request, Session* but_for,
                         Afterwards* after) {
  std::vector<Session*> not_these;
  if (but_for != nullptr) not_these = groups_.Members(but_for);
  const std::vector<quota::LeaseId> shared(shared_leases_.begin(),
                                           shared_leases_.end());
  for (const quota::LeaseId id : shared) {
    const auto found = leases_.find(id);
    if (found == leases_.end() || found->second->asked_back != request)
      continue;
    Lease* lease = found->second.get();  // the table may move its entries
    lease->asked_back.reset();
    for (Session* user : UsersOf(*lease)) {
      if (std::find(not_these.begin(), not_these.end(), user) ==
          not_these.end()) {
        AdvanceRestore(user, after);
      }
    }
    ServeAttaches(lease, after);
  }
}

}  // namespace gmb::broker
