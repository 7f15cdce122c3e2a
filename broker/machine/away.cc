// Finds the leases that sessions have to wait for before their gates can open.
#include "broker/machine/away.h"

#include <algorithm>

#include "broker/machine/lease_users.h"

namespace gmb::broker {

Away AwayOf(const State& state, const std::vector<Session*>& members) {
  Away away;
  for (Session* member : members) {
    away.looks += member->leases->size();
    const bool is_closed = member->gate != nullptr && member->gate->closed();
    for (const quota::LeaseId id : *member->leases) {
      Lease* lease = &state.LeaseAt(id);
      const Mapping& mapping = *lease->MappingOf(member->id);
      away.moving |= lease->move->residence == Residence::kEvicting ||
                     lease->move->residence == Residence::kRestoring ||
                     mapping.asked || *lease->put_off ||
                     // Others are paused so that it can be taken.
                     (*lease->awaits_pause && (mapping.unmapped || is_closed));
      if (lease->move->residence == Residence::kEvicted) {
        if (IsAskedBack(state, *lease)) {
          away.asked_back = true;
        } else {
          away.evicted.push_back(id);
        }
      } else if (mapping.unmapped || lease->move->torn) {
        away.unready.emplace_back(lease, member);
      }
    }
  }
  return away;
}

bool MovesFor(const Lease& lease, const std::vector<Session*>& members) {
  const bool all = lease.move->residence == Residence::kEvicting ||
                   lease.move->residence == Residence::kRestoring;
  const std::vector<Mapping>& mappings = lease.move->mappings;
  return std::any_of(
      mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
        const auto member =
            std::lower_bound(members.begin(), members.end(), mapping.session,
                             [](const Session* session, uint64_t id) {
                               return session->id < id;
                             });
        return (all || mapping.asked) && member != members.end() &&
               (*member)->id == mapping.session;
      });
}

}  // namespace gmb::broker
