// Makes a tenant's policy of what is declared of it, or was before its last
// change. Values for devices that this machine lacks are left out.
#include "broker/server/declared_policy.h"

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

bool IsLeaving(const Subject& subject) {
  return subject.maker.writer == Source::Writer::kFile && !subject.in_file;
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
  return PolicyHere(name, found->second.former, core);
}

std::optional<TenantPolicy> PolicyOfStaying(const Declared& declared,
                                            const std::string& name,
                                            const Core& core) {
  const absl::StatusOr<TenantPolicy> known = core.GetPolicy(name);
  const auto found = declared.tenants.find(name);
  if (!known.ok() || found == declared.tenants.end() ||
      IsLeaving(found->second))
    return std::nullopt;
  TenantPolicy policy = DeclaredPolicy(declared, name, core);
  policy.token = known->token;
  return policy;
}

}  // namespace gmb::broker
