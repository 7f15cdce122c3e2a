// The broker's start: what of operators' changes is not in force.
#include "broker/daemon/dropped_values.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/declared/conflict.h"
#include "broker/server/grown_pools.h"
#include "broker/store/quota_store.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

std::string AmountText(const quota::Amount& amount) {
  return amount.is_fraction() ? absl::StrCat(100 * amount.fraction(), "%")
                              : proto::FormatBytes(amount.bytes());
}

bool IsNothing(const quota::Amount& amount) {
  return amount.is_fraction() ? amount.fraction() == 0 : amount.bytes() == 0;
}

// Of one tenant; empty: nothing.
std::string DroppedOf(const TenantPolicy& stored,
                      const TenantPolicy& in_force) {
  std::vector<std::string> parts;
  if (stored.quota.guarantee != in_force.quota.guarantee &&
      !IsNothing(stored.quota.guarantee)) {
    parts.push_back(absl::StrCat("its guarantee of ",
                                 AmountText(stored.quota.guarantee),
                                 " does not fit any more"));
  }
  for (const auto& [device, quota] : stored.device_quotas) {
    const auto there = in_force.device_quotas.find(device);
    if (there == in_force.device_quotas.end()) {
      parts.push_back(
          absl::StrCat("it has a quota for ", device, ", which is not here"));
    } else if (there->second.guarantee != quota.guarantee &&
               !IsNothing(quota.guarantee)) {
      parts.push_back(absl::StrCat("its guarantee of ",
                                   AmountText(quota.guarantee), " on ", device,
                                   " does not fit any more"));
    }
  }
  return absl::StrJoin(parts, ", and ");
}

// One of the file's is no operator's to give up.
std::string WhoSetIt(const Subject& subject) {
  for (const auto& [field, writes] : subject.fields) {
    const Written* const last = InForce(subject, field);
    if (absl::EndsWith(field, "guarantee") && last != nullptr &&
        last->source.writer != Source::Writer::kFile)
      return "an operator set it";
  }
  return "declared";
}

void AddPools(const StoredState& stored, const Core& core,
              DroppedValues* dropped) {
  const v1::GetStatusResponse status = core.Status();
  for (const v1::PoolStatus& pool : status.pools()) {
    const std::string& device = pool.device().uuid();
    const auto found = stored.pool_targets.find(device);
    if (found == stored.pool_targets.end() || HasSize(pool, found->second))
      continue;
    const quota::Amount& size = found->second;
    (*dropped)[DroppedPool(device)] = absl::StrCat(
        "the pool is ", proto::FormatBytes(pool.target_bytes()),
        ", since the size that an operator gave it, ", AmountText(size),
        ", does not fit any more: the pool grows to it as memory comes free, "
        "and "
        "`gmb pool resize` settles it at once");
  }
}

}  // namespace

DroppedValues FindDropped(const Declared& declared, const Core& core) {
  DroppedValues dropped;
  const StoredState stored = InForce(declared);
  for (const TenantPolicy& tenant : stored.tenants) {
    const absl::StatusOr<TenantPolicy> in_force = core.GetPolicy(tenant.name);
    if (!in_force.ok()) continue;
    const std::string what = DroppedOf(tenant, *in_force);
    if (what.empty()) continue;
    const Subject& subject = declared.tenants.at(tenant.name);
    const std::string sources = DifferentSources(subject);
    dropped[tenant.name] = absl::StrCat(
        "tenant ", tenant.name, " is not as ", WhoSetIt(subject), ": ", what,
        sources.empty() ? "" : absl::StrCat(" (", sources, ")"),
        ": a guarantee is in force again when it fits, and `gmb tenant set ",
        tenant.name, "` with another one settles it at once");
  }
  AddPools(stored, core, &dropped);
  return dropped;
}

}  // namespace gmb::broker
