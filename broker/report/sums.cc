// Sums over all sessions and leases: for metrics.
#include "broker/report/sums.h"

#include <cstddef>

#include "broker/machine/backed.h"
#include "broker/report/session_gate_state.h"

namespace gmb::broker::report {

void CountSessions(const State& state, quota::Instant now, Page* page,
                   SessionStates* states) {
  for (size_t looks = 0; looks < kLooksASlice; ++looks) {
    const Session* const session =
        state.sessions->FindAfter(NumberIn(page->after));
    page->more = session != nullptr;
    if (!page->more) return;
    page->after = KeyOf({session->id});
    if (!session->tenant.has_value()) continue;
    SessionStates::Row& row = states->by_tenant[*session->tenant];
    if (row.tenant.empty())
      row.tenant = state.TenantAt(*session->tenant).policy.name;
    ++row.sessions[GateStateOf(*session, now)];
  }
}

void SumBacked(const State& state, Page* page, BackedSums* sums) {
  auto it = state.leases->upper_bound(quota::LeaseId{NumberIn(page->after)});
  for (size_t looks = 0; looks < kLooksASlice && it != state.leases->end();
       ++looks, ++it) {
    const Lease& lease = *it->second;
    page->after = KeyOf({it->first.value});
    if (lease.move->residence == Residence::kEvicted) continue;
    const uint64_t bytes = BackedBytes(state, lease);
    if (bytes > 0) sums->bytes[{lease.tenant, lease.request.pool}] += bytes;
  }
  page->more = it != state.leases->end();
}

}  // namespace gmb::broker::report
