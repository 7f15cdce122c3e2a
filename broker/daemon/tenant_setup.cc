// The broker's start: the file's tenants, with operators' changes over them.
#include "broker/daemon/tenant_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// Quotas of a device by its UUID, however the file names it.
void UseUuids(const std::map<std::string, std::string>& uuids,
              TenantPolicy* policy) {
  std::map<std::string, quota::TenantQuota> by_uuid;
  for (const auto& [device, quota] : policy->device_quotas) {
    auto it = uuids.find(device);
    by_uuid[it == uuids.end() ? device : it->second] = quota;
  }
  policy->device_quotas = std::move(by_uuid);
}

bool Has(const std::map<std::string, std::string>& uuids,
         const std::string& uuid) {
  return std::any_of(uuids.begin(), uuids.end(),
                     [&](const auto& entry) { return entry.second == uuid; });
}

TenantPolicy OnKnownDevices(const TenantPolicy& stored,
                            const std::map<std::string, std::string>& uuids) {
  TenantPolicy policy = stored;
  for (const auto& [device, quota] : stored.device_quotas) {
    if (Has(uuids, device)) continue;
    policy.device_quotas.erase(device);
    LogEvent(
        LogLevel::kWarning, "stored_quota_unused",
        {{"tenant", stored.name},
         {"device", device},
         {"message", "an operator set a quota for a device that is not here"}});
  }
  return policy;
}

TenantPolicy WithoutGuarantee(TenantPolicy policy) {
  policy.quota.guarantee = quota::Amount();
  for (auto& [device, quota] : policy.device_quotas)
    quota.guarantee = quota::Amount();
  return policy;
}

bool IsDeleted(const StoredState& stored, const std::string& name) {
  const auto& deleted = stored.deleted_tenants;
  return std::find(deleted.begin(), deleted.end(), name) != deleted.end();
}

}  // namespace

std::vector<StartingTenant> MergeTenants(
    const std::vector<TenantConfig>& configured, const StoredState& stored,
    const std::map<std::string, std::string>& uuids) {
  std::map<std::string, TenantConfig> from_file;
  for (const TenantConfig& tenant : configured) {
    const std::string& name = tenant.policy.name;
    if (IsDeleted(stored, name)) {
      LogEvent(LogLevel::kWarning, "tenant_stays_deleted",
               {{"tenant", name},
                {"message",
                 "an operator deleted it; `gmb tenant set` brings it back"}});
      continue;
    }
    from_file[name] = tenant;
    UseUuids(uuids, &from_file[name].policy);
  }
  std::vector<StartingTenant> all;
  for (const TenantPolicy& policy : stored.tenants) {
    StartingTenant tenant{{OnKnownDevices(policy, uuids), {}},
                          /*is_stored=*/true};
    if (const auto file = from_file.extract(policy.name)) {
      tenant.config.policy.token = file.mapped().policy.token;
      tenant.config.socket = file.mapped().socket;
      LogEvent(LogLevel::kInfo, "stored_quota_wins",
               {{"tenant", policy.name},
                {"message",
                 "an operator's change is put over the configuration file"}});
    }
    all.push_back(std::move(tenant));
  }
  for (auto& [name, tenant] : from_file)
    all.push_back({std::move(tenant), /*is_stored=*/false});
  return all;
}

std::string DefaultTenantWarning(const std::string& default_tenant,
                                 const std::set<std::string>& tenants) {
  if (default_tenant.empty() || tenants.contains(default_tenant)) return "";
  return absl::StrCat(
      "default_tenant: there is no tenant ", default_tenant,
      ": peers that no token and no uid assigns are refused until there is "
      "one: correct the name, or make it with `gmb tenant set ",
      default_tenant, "`");
}

absl::Status AddTenants(const std::vector<StartingTenant>& tenants,
                        Core* core) {
  for (const StartingTenant& tenant : tenants) {
    const TenantPolicy& policy = tenant.config.policy;
    absl::Status set = core->SetTenant(policy).status();
    if (!set.ok() && tenant.is_stored) {
      LogEvent(LogLevel::kError, "stored_guarantee_does_not_fit",
               {{"tenant", policy.name},
                {"message",
                 "it starts without its guarantee: set it anew with `gmb "
                 "tenant set`"},
                {"reason", set.message()}});
      set = core->SetTenant(WithoutGuarantee(policy)).status();
    }
    if (!set.ok())
      return absl::Status(set.code(), absl::StrCat("tenant ", policy.name, ": ",
                                                   set.message()));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
