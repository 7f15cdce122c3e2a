// Changes of tenants before they are made: whether they can be, and what they
// would take from processes.
#include "broker/machine/tenant_fit.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/machine/refusals.h"
#include "broker/tenant_name.h"
#include "proto/error_status.h"
#include "quota/tenant_quota.h"

namespace gmb::broker {
namespace {

// The bytes that the processes of a tenant that leaves lose, wherever they lie.
uint64_t HeldByProcesses(const State& state, const Tenant& tenant) {
  if (state.sessions->OfTenant(tenant.id).empty()) return 0;
  uint64_t bytes = 0;
  for (const auto& [id, pool] : *state.pools) {
    const quota::TenantPoolView view = *state.engine->TenantPool(tenant.id, id);
    bytes += view.leased_bytes + view.unreturned_bytes;
  }
  return bytes;
}

// The limit on the device stays as it is. One that is of all devices is one
// value, and stays as a whole.
void KeepLimit(const State& state, const HeldBack& held,
               std::vector<TenantPolicy>* tenants) {
  const auto policy = std::find_if(
      tenants->begin(), tenants->end(),
      [&](const TenantPolicy& other) { return other.name == held.tenant; });
  if (held.device.empty() || policy == tenants->end()) return;
  const TenantPolicy& known = state.tenants->Find(held.tenant)->policy;
  const bool is_own = known.device_quotas.contains(held.device) ||
                      policy->device_quotas.contains(held.device);
  quota::TenantQuota& quota =
      is_own ? policy->device_quotas.try_emplace(held.device, policy->quota)
                   .first->second
             : policy->quota;
  quota.limit = known.QuotaOn(held.device).limit;
}

absl::Status Named(const std::string& tenant, const absl::Status& status) {
  absl::Status named(status.code(),
                     absl::StrCat("tenant ", tenant, ": ", status.message()));
  status.ForEachPayload(
      [&named](absl::string_view url, const absl::Cord& detail) {
        named.SetPayload(url, detail);
      });
  return named;
}

absl::Status CheckPoolFits(const State& state, const Pool& pool,
                           const std::vector<TenantPolicy>& tenants,
                           const std::set<std::string>& named) {
  std::vector<quota::TenantQuota> quotas;
  quotas.reserve(tenants.size() + state.tenants->size());
  for (const TenantPolicy& policy : tenants)
    quotas.push_back(policy.QuotaOn(pool.uuid()));
  for (const auto& [id, tenant] : *state.tenants) {
    if (!named.contains(tenant.policy.name))
      quotas.push_back(tenant.policy.QuotaOn(pool.uuid()));
  }
  const quota::PoolView view = *state.engine->Pool(pool.id);
  const auto refused =
      quota::CheckQuotas(quotas, view.target_bytes, view.granularity_bytes);
  if (!refused.has_value()) return absl::OkStatus();
  const absl::Status status = RefusalStatus(refused->refusal, pool.uuid());
  const bool is_of_one =
      refused->refusal.reason != quota::Reason::kOvercommitted &&
      refused->index < tenants.size();
  return is_of_one ? Named(tenants[refused->index].name, status) : status;
}

}  // namespace

absl::Status CheckAlone(const State& state, const TenantPolicy& policy) {
  if (!IsValidTenantName(policy.name)) {
    return proto::MakeError(v1::BAD_REQUEST, kTenantNameRule,
                            {.field = "name"});
  }
  if (policy.max_handles == 0 || policy.max_sessions == 0) {
    return proto::MakeError(
        v1::BAD_REQUEST, "max_handles and max_sessions are at least 1",
        {.field = policy.max_handles == 0 ? "max_handles" : "max_sessions"});
  }
  for (const auto& [device, quota] : policy.device_quotas) {
    if (state.FindPool(device) == nullptr) return NoSuchDevice(device);
  }
  return absl::OkStatus();
}

absl::Status CheckUids(const State& state,
                       const std::vector<TenantPolicy>& tenants) {
  std::set<std::string> named;
  for (const TenantPolicy& policy : tenants) named.insert(policy.name);
  std::map<uint32_t, std::string> owners;
  for (const TenantPolicy& policy : tenants) {
    for (const uint32_t uid : policy.uids) {
      const Tenant* const has_it = state.tenants->OfUid(uid);
      if (has_it != nullptr && !named.contains(has_it->policy.name))
        return Named(policy.name, UidOfAnother(uid, has_it->policy.name));
      const auto [owner, is_new] = owners.try_emplace(uid, policy.name);
      if (owner->second != policy.name)
        return Named(policy.name, UidOfAnother(uid, owner->second));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllFit(const State& state,
                         const std::vector<TenantPolicy>& tenants) {
  std::set<std::string> named;
  for (const TenantPolicy& policy : tenants) {
    named.insert(policy.name);
    if (absl::Status alone = CheckAlone(state, policy); !alone.ok())
      return Named(policy.name, alone);
  }
  if (absl::Status uids = CheckUids(state, tenants); !uids.ok()) return uids;
  for (const auto& [id, pool] : *state.pools) {
    absl::Status fits = CheckPoolFits(state, *pool, tenants, named);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

uint64_t LeasedBytes(const State& state, quota::TenantId tenant) {
  uint64_t bytes = 0;
  for (const auto& [id, pool] : *state.pools)
    bytes += state.engine->TenantPool(tenant, id)->leased_bytes;
  return bytes;
}

uint64_t TakesBytes(const State& state, const Tenant& known,
                    const TenantPolicy& policy, const Pool& pool) {
  const quota::PoolView view = *state.engine->Pool(pool.id);
  const quota::TenantPoolView has =
      *state.engine->TenantPool(known.id, pool.id);
  const uint64_t limit =
      policy.QuotaOn(pool.uuid())
          .limit.Resolve(view.target_bytes, view.granularity_bytes);
  const uint64_t held = has.leased_bytes - has.evicted_bytes;
  const uint64_t above = held - std::min(held, limit);
  // Bytes above the limit that it has now are being taken already.
  return above - std::min(above, has.over_limit_bytes);
}

std::vector<HeldBack> HoldBack(const State& state, const FileChange& change,
                               std::vector<TenantPolicy>* tenants) {
  std::vector<HeldBack> takes;
  for (const TenantPolicy& policy : *tenants) {
    const Tenant* const known = state.tenants->Find(policy.name);
    if (known == nullptr) continue;
    for (const auto& [id, pool] : *state.pools) {
      const uint64_t bytes = TakesBytes(state, *known, policy, *pool);
      if (bytes > 0) takes.push_back({policy.name, pool->uuid(), bytes});
    }
  }
  for (const std::string& name : change.leaving) {
    const Tenant* const known = state.tenants->Find(name);
    if (known == nullptr || state.departures->contains(known->id)) continue;
    if (const uint64_t bytes = HeldByProcesses(state, *known); bytes > 0)
      takes.push_back({name, "", bytes});
  }
  std::sort(takes.begin(), takes.end(),
            [](const HeldBack& a, const HeldBack& b) {
              return std::tie(a.bytes, a.tenant, a.device) <
                     std::tie(b.bytes, b.tenant, b.device);
            });
  uint64_t left = change.may_reclaim_bytes;
  std::vector<HeldBack> held;
  for (HeldBack& one : takes) {
    if (one.bytes <= left) {
      left -= one.bytes;
      continue;
    }
    KeepLimit(state, one, tenants);
    held.push_back(std::move(one));
  }
  return held;
}

}  // namespace gmb::broker
