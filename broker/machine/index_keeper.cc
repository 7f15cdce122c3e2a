// Every change of what reclaim knows of leases comes by here.
#include "broker/machine/index_keeper.h"

#include <variant>

#include "broker/machine/recorder.h"

namespace gmb::broker {

void IndexKeeper::Touch(Lease* lease) {
  state_.reclaim.Edit({}).Touch(state_, *lease);
  Recorder(state_).Touch(lease->id);
}

void IndexKeeper::TouchLeasesOf(const Session& session) {
  for (const quota::LeaseId id : *session.leases) Touch(&state_.LeaseAt(id));
}

void IndexKeeper::Forget(Lease* lease) {
  state_.reclaim.Edit({}).Forget(*lease);
  Recorder(state_).Touch(lease->id);
}

void IndexKeeper::ForgetTenant(quota::TenantId tenant) {
  state_.reclaim.Edit({}).ForgetTenant(tenant);
}

void IndexKeeper::MarkChanged(quota::PoolId pool, quota::TenantId tenant) {
  state_.reclaim.Edit({}).MarkChanged(pool, tenant);
}

void IndexKeeper::MarkChangedEverywhere() {
  for (const auto& [id, pool] : *state_.pools)
    state_.reclaim.Edit({}).MarkChanged(id);
}

void IndexKeeper::MarkChangedEverywhere(quota::TenantId tenant) {
  for (const auto& [id, pool] : *state_.pools) MarkChanged(id, tenant);
}

void IndexKeeper::MarkChangedBy(const quota::Event& event) {
  ReclaimIndex& index = state_.reclaim.Edit({});
  if (const auto* quota = std::get_if<quota::QuotaSet>(&event)) {
    index.MarkChanged(quota->pool, quota->tenant);
  } else if (const auto* tenant = std::get_if<quota::TenantSet>(&event)) {
    MarkChangedEverywhere(tenant->tenant);
  } else if (const auto* owed = std::get_if<quota::UnreturnedChanged>(&event)) {
    index.MarkChanged(owed->pool, owed->tenant);
  } else if (const auto* set = std::get_if<quota::PoolSet>(&event)) {
    index.MarkChanged(set->pool);
  } else if (const auto* drain = std::get_if<quota::PoolDrain>(&event)) {
    index.MarkChanged(drain->pool);
  } else if (const auto* missing = std::get_if<quota::MissingChanged>(&event)) {
    index.MarkChanged(missing->pool);
  } else if (std::holds_alternative<quota::TenantRemove>(event)) {
    MarkChangedEverywhere();  // its guarantees may have kept a pool large
  }
}

void IndexKeeper::Sleep(quota::PoolId pool, quota::TenantId tenant) {
  state_.reclaim.Edit({}).Sleep(pool, tenant);
}

std::set<quota::LeaseId> IndexKeeper::TakeLate() {
  return state_.reclaim.Edit({}).TakeLate();
}

bool IndexKeeper::TakeWoken() { return state_.reclaim.Edit({}).TakeWoken(); }

}  // namespace gmb::broker
