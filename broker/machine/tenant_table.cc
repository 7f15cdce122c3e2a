// The tenants, to which all leases are charged, and which of them a peer is.
#include "broker/machine/tenant_table.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "ipc/random.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// With a seed of this process's.
size_t HashOf(const std::string& token) {
  return absl::Hash<std::string>()(token);
}

}  // namespace

void TenantTable::List(const Tenant& tenant) {
  for (const uint32_t uid : tenant.policy.uids) by_uid_.emplace(uid, tenant.id);
  if (!tenant.policy.token.empty())
    by_token_.emplace(HashOf(tenant.policy.token), tenant.id);
}

void TenantTable::Unlist(const Tenant& tenant) {
  for (const uint32_t uid : tenant.policy.uids) by_uid_.erase({uid, tenant.id});
  by_token_.erase({HashOf(tenant.policy.token), tenant.id});
}

Tenant& TenantTable::Set(const TenantPolicy& policy) {
  const auto known = ids_.find(policy.name);
  const quota::TenantId id =
      known != ids_.end() ? known->second : quota::TenantId{next_id_++};
  ids_[policy.name] = id;
  Tenant& tenant = tenants_[id];
  Unlist(tenant);
  tenant.id = id;
  tenant.policy = policy;
  List(tenant);
  return tenant;
}

void TenantTable::Remove(quota::TenantId id) {
  const Tenant* tenant = Find(id);
  if (tenant == nullptr) return;
  Unlist(*tenant);
  ids_.erase(tenant->policy.name);
  tenants_.erase(id);
}

const Tenant* TenantTable::Find(quota::TenantId id) const {
  const auto it = tenants_.find(id);
  return it == tenants_.end() ? nullptr : &it->second;
}

const Tenant* TenantTable::Find(absl::string_view name) const {
  const auto it = ids_.find(name);
  return it == ids_.end() ? nullptr : Find(it->second);
}

const Tenant* TenantTable::OfUid(uint32_t uid) const {
  const auto owner = by_uid_.lower_bound({uid, {}});
  const bool is_known = owner != by_uid_.end() && owner->first == uid;
  return is_known ? Find(owner->second) : nullptr;
}

absl::StatusOr<quota::TenantId> TenantTable::Of(
    const PeerIdentity& peer, absl::string_view by_default) const {
  if (peer.origin == Origin::kTenantDirectory) {
    if (const Tenant* tenant = Find(peer.tenant_directory)) return tenant->id;
    return proto::MakeError(
        v1::NO_SUCH_TENANT,
        absl::StrCat("this socket's tenant was deleted: tenant=",
                     peer.tenant_directory));
  }
  if (!peer.tenant_token.empty()) {
    const size_t hash = HashOf(peer.tenant_token);
    for (auto it = by_token_.lower_bound({hash, {}});
         it != by_token_.end() && it->first == hash; ++it) {
      if (ipc::ConstantTimeEquals(Find(it->second)->policy.token,
                                  peer.tenant_token)) {
        return it->second;
      }
    }
    return proto::MakeError(v1::NO_SUCH_TENANT,
                            "no tenant has this token: check the token file");
  }
  if (const Tenant* tenant = OfUid(peer.uid)) return tenant->id;
  if (const Tenant* tenant = Find(by_default)) return tenant->id;
  return proto::MakeError(
      v1::NO_SUCH_TENANT,
      absl::StrCat(
          "nothing says which tenant this process is: connect through the "
          "tenant's own "
          "socket directory (tenants/NAME below this one), send a tenant "
          "token, or have "
          "the operator give the uid to a tenant or set default_tenant: uid=",
          peer.uid));
}

const Tenant* TenantTable::FindAfter(absl::string_view name) const {
  const auto it = ids_.upper_bound(name);
  return it == ids_.end() ? nullptr : Find(it->second);
}

}  // namespace gmb::broker
