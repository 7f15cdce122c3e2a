// Operators' changes of tenants before they are made: whether they can be, and
// what they would take.
#include <algorithm>

#include "broker/machine/operator_desk.h"
#include "broker/machine/refusals.h"
#include "broker/machine/tenant_fit.h"
#include "device/hostpool/host_extent.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// One amount of a quota, in each pool: 75 bytes for 75% would come to nothing
// and take all that the tenant has. One that a pool alone is too small for is
// meant all the same, and so is one that the tenant has already.
absl::Status CheckAmount(const State& state, const TenantPolicy& policy,
                         const TenantPolicy& before, const char* field,
                         quota::Amount quota::TenantQuota::*amount) {
  absl::Status nothing;
  for (const auto& [pool_id, pool] : *state.pools) {
    const quota::Amount wanted = policy.QuotaOn(pool->uuid()).*amount;
    if (wanted == before.QuotaOn(pool->uuid()).*amount) continue;
    const quota::PoolView view = *state.engine->Pool(pool_id);
    if (wanted == quota::Amount::Fraction(0) ||
        wanted == quota::Amount::Bytes(0) ||
        wanted.Resolve(view.target_bytes, view.granularity_bytes) > 0) {
      return absl::OkStatus();
    }
    nothing = ComesToNothing(field, wanted, view.granularity_bytes);
  }
  return nothing;
}

absl::Status CheckHostLimit(const State& state, const TenantPolicy& policy,
                            const TenantPolicy& before) {
  const quota::Amount limit = policy.reclaim.host_limit;
  const uint64_t granule = device::kHostPoolGranularityBytes;
  const bool meant = limit == before.reclaim.host_limit ||
                     limit == quota::Amount::Fraction(0) ||
                     limit == quota::Amount::Bytes(0);
  // Without a host pool the limit is none, whatever it says.
  const uint64_t capacity = state.host_books->capacity_bytes();
  if (meant || capacity == 0 || limit.Resolve(capacity, granule) > 0)
    return absl::OkStatus();
  return ComesToNothing("host_limit", limit, granule);
}

absl::Status CheckAmounts(const State& state, const TenantPolicy& policy,
                          const TenantPolicy& before) {
  absl::Status checked = CheckAmount(state, policy, before, "guarantee",
                                     &quota::TenantQuota::guarantee);
  checked.Update(
      CheckAmount(state, policy, before, "limit", &quota::TenantQuota::limit));
  checked.Update(CheckHostLimit(state, policy, before));
  return checked;
}

}  // namespace

absl::Status OperatorDesk::CheckTenant(const TenantPolicy& policy) const {
  const Tenant* known = state_.tenants->Find(policy.name);
  TenantPolicy made;
  made.quota.limit = quota::Amount::Fraction(1);
  // First: a limit of nothing is below each guarantee, which says less.
  const absl::Status meant =
      CheckAmounts(state_, policy, known != nullptr ? known->policy : made);
  return meant.ok() ? CheckFits(policy) : meant;
}

absl::Status OperatorDesk::CheckFits(const TenantPolicy& policy) const {
  if (absl::Status alone = CheckAlone(state_, policy); !alone.ok())
    return alone;
  if (absl::Status uids = CheckUids(state_, {policy}); !uids.ok()) return uids;
  const Tenant* known = state_.tenants->Find(policy.name);
  const quota::TenantId id =
      known != nullptr ? known->id : state_.tenants->next_id();
  for (const auto& [pool_id, pool] : *state_.pools) {
    const quota::QuotaSet change{pool_id, id, policy.QuotaOn(pool->uuid())};
    if (std::optional<quota::Refusal> refusal = state_.engine->Check(change)) {
      return RefusalStatus(*refusal, pool->uuid());
    }
  }
  return absl::OkStatus();
}

std::vector<v1::Change> OperatorDesk::Preview(
    const TenantPolicy& policy) const {
  std::vector<v1::Change> changes;
  const Tenant* known = state_.tenants->Find(policy.name);
  for (const auto& [pool_id, pool] : *state_.pools) {
    v1::Change& change = changes.emplace_back();
    change.set_device(pool->uuid());
    if (known == nullptr) continue;
    change.set_takes_bytes(TakesBytes(state_, *known, policy, *pool));
  }
  return changes;
}

}  // namespace gmb::broker
