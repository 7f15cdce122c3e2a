// Makes a tenant's policy of what is declared of it, or was before its last
// change. Values for devices that this machine lacks are left out.
#include "broker/server/declared_policy.h"

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gmb::broker {
namespace {

TenantPolicy PolicyHere(const std::string& name, const Fields& fields,
                        const Core& core) {
  TenantPolicy policy = PolicyOf(name, fields);
  std::erase_if(policy.device_quotas, [&](const auto& quota) {
    return !core.ResolveDevice(quota.first).ok();
  });
  return policy;
}

// The devices for which the file or an apply has a value. An operator's change
// cannot take it away, and so says what is to hold there.
std::set<std::string> DevicesOfOthers(const Subject& subject) {
  std::set<std::string> devices;
  for (const auto& [field, writes] : subject.fields) {
    absl::string_view device = field;
    if (!absl::ConsumePrefix(&device, "devices/")) continue;
    for (const Written& written : writes) {
      if (written.source.writer == Source::Writer::kFile ||
          written.source.writer == Source::Writer::kApply)
        devices.emplace(device.substr(0, device.rfind('/')));
    }
  }
  return devices;
}

bool Declares(const std::string& name, const Subject& subject, uint32_t uid) {
  const std::vector<uint32_t> uids = PolicyOf(name, InForce(subject)).uids;
  return std::find(uids.begin(), uids.end(), uid) != uids.end();
}

}  // namespace

TenantPolicy DeclaredPolicy(const Declared& declared, const std::string& name,
                            const Core& core) {
  const auto found = declared.tenants.find(name);
  return PolicyHere(
      name, found == declared.tenants.end() ? Fields() : InForce(found->second),
      core);
}

std::optional<TenantPolicy> FormerPolicy(const Declared& declared,
                                         const std::string& name,
                                         const Core& core) {
  const auto found = declared.tenants.find(name);
  if (found == declared.tenants.end() || found->second.former.empty())
    return std::nullopt;
  TenantPolicy policy = PolicyHere(name, found->second.former, core);
  for (const std::string& device : DevicesOfOthers(found->second)) {
    if (core.ResolveDevice(device).ok())
      policy.device_quotas.try_emplace(device, policy.quota);
  }
  return policy;
}

void KeepLeftOut(const TenantPolicy& before, const TenantPolicy& in_force,
                 TenantPolicy* policy) {
  if (policy->quota.guarantee == before.quota.guarantee)
    policy->quota.guarantee = in_force.quota.guarantee;
  for (auto& [device, quota] : policy->device_quotas) {
    if (quota.guarantee == before.QuotaOn(device).guarantee)
      quota.guarantee = in_force.QuotaOn(device).guarantee;
  }
}

HeldUids UidsInForce(const Declared& declared, const Core& core,
                     const std::set<std::string>& changing) {
  HeldUids held;
  for (const auto& [name, subject] : declared.tenants) {
    const absl::StatusOr<TenantPolicy> policy = core.GetPolicy(name);
    if (!policy.ok()) continue;
    const bool gives_up = changing.contains(name) && !IsLeaving(subject);
    for (const uint32_t uid : policy->uids) {
      if (!gives_up || Declares(name, subject, uid)) held[uid] = name;
    }
  }
  return held;
}

std::optional<TenantPolicy> PolicyOfStaying(const Declared& declared,
                                            const UidOwners& owners,
                                            const std::string& name,
                                            const Core& core) {
  const absl::StatusOr<TenantPolicy> known = core.GetPolicy(name);
  const auto found = declared.tenants.find(name);
  if (!known.ok() || found == declared.tenants.end() ||
      IsLeaving(found->second))
    return std::nullopt;
  TenantPolicy policy = DeclaredPolicy(declared, name, core);
  (void)owners.TakeOthers(&policy);
  policy.token = known->token;
  return policy;
}

}  // namespace gmb::broker
