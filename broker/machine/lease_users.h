#ifndef GMB_BROKER_MACHINE_LEASE_USERS_H_
#define GMB_BROKER_MACHINE_LEASE_USERS_H_

#include <cstdint>
#include <vector>

#include "broker/machine/group_gates.h"
#include "broker/machine/lease.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "gmb/v1/session.pb.h"
#include "quota/planner.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// Of its group, by their ids; itself alone without one.
[[nodiscard]] std::vector<Session*> MembersOf(const State& state,
                                              Session* session);
[[nodiscard]] std::vector<uint64_t> IdsOf(
    const std::vector<Session*>& sessions);
// Whether its gate is on, and those of all of its group: else nothing of them
// can be taken.
[[nodiscard]] bool GroupIsOn(const State& state, const Session& session);
// The first member's id names the group for the planner, which only compares.
[[nodiscard]] quota::GroupId GroupOf(const State& state,
                                     const Session& session);
// A lease that the session has; null: it has no such lease.
[[nodiscard]] Lease* FindLease(const State& state, const Session& session,
                               uint64_t lease);
// A lease that is exported so, to sessions of that one's tenant; null: there is
// none, or it has ended.
[[nodiscard]] Lease* FindExported(const State& state, const Session& session,
                                  const v1::Exported& exported);
// Whether the broker has closed the gates of all who have it. Of one who has
// written over its own since, the next broker finds that it is open.
[[nodiscard]] bool AllClosed(const State& state, const Lease& lease);
// The lease's session or, of a shared one, all who are attached, with the
// groups that they belong to; each once.
[[nodiscard]] std::vector<Session*> UsersOf(const State& state,
                                            const Lease& lease);
// The least parked of its users' gates. Looks at each; of a group that is in
// `groups`, at its holder's alone.
[[nodiscard]] quota::Gate GateOver(const State& state, const Lease& lease,
                                   quota::Instant now,
                                   GroupGates* groups = nullptr);
// Whether a scope of the session, or of its group, waits to be let in.
[[nodiscard]] bool WantsIn(const State& state, Session* session);
// How often the lease was asked back since the last of them was answered.
[[nodiscard]] uint32_t RestoreAttempts(const State& state, const Lease& lease);
// The tenant's shared leases, dropped ones too.
[[nodiscard]] std::vector<quota::LeaseId> SharedOf(const State& state,
                                                   quota::TenantId tenant);
// Whether a Restore that is not answered names the lease, which is shared.
[[nodiscard]] bool IsAskedBack(const State& state, const Lease& lease);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_USERS_H_
