// Who uses a lease: its session or, of a shared one, all who are attached.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"

namespace gmb::broker {

// Each user once, however many of the leases it uses: that looks at all of its
// own.
void Machine::AdvanceUsersOf(absl::Span<const quota::LeaseId> leases,
                             Turn& turn) {
  std::vector<uint64_t> users;
  absl::flat_hash_set<uint64_t> seen;
  for (const quota::LeaseId id : leases) {
    const auto lease = state_.leases.find(id);
    if (lease == state_.leases.end()) continue;
    for (const Mapping& mapping : lease->second->mappings) {
      if (seen.insert(mapping.session).second) users.push_back(mapping.session);
    }
  }
  for (const uint64_t user : users) {
    if (Session* session = state_.sessions.Find(user))
      AdvanceRestore(session, turn);
  }
  for (const quota::LeaseId id : leases) {
    const auto still = state_.leases.find(id);
    if (still != state_.leases.end()) ServeAttaches(still->second.get(), turn);
  }
}

void Machine::AnswerUsers(Lease* lease, const absl::Status& status,
                          Turn& turn) {
  for (Session* user : UsersOf(state_, *lease))
    AnswerRestores(user, status, turn);
  const SharedName* name =
      state_.shared_names.Of(lease->tenant, lease->request);
  if (lease->shared && name != nullptr)
    RefuseAttaches(state_.shared_names.StopAllWaiting(*name), status, turn);
}

// A Restore that shared leases were named in has come to nothing: who else
// needs them asks for himself.
void Machine::AdvanceOthers(quota::RequestId request, Session* but_for,
                            Turn& turn) {
  std::vector<Session*> not_these;
  if (but_for != nullptr) not_these = state_.groups.Members(but_for);
  for (const quota::LeaseId id : state_.asked_back.By(request)) {
    const auto found = state_.leases.find(id);
    if (found == state_.leases.end() || found->second->asked_back != request)
      continue;
    Lease* lease = found->second.get();  // the table may move its entries
    state_.asked_back.Forget(*lease);
    for (Session* user : UsersOf(state_, *lease)) {
      if (std::find(not_these.begin(), not_these.end(), user) ==
          not_these.end()) {
        AdvanceRestore(user, turn);
      }
    }
    ServeAttaches(lease, turn);
  }
}

}  // namespace gmb::broker
