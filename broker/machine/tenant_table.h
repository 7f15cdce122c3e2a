#ifndef GMB_BROKER_MACHINE_TENANT_TABLE_H_
#define GMB_BROKER_MACHINE_TENANT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/peer.h"
#include "broker/machine/tenant.h"
#include "quota/units.h"

namespace gmb::broker {

// The tenants, by id and by name alike, and which of them a peer is; a tenant
// stays where it is until it is removed.
//
// A value without threads or locks: the core changes it under its lock.
class TenantTable {
 public:
  // Makes the tenant of that name if it is new. Ids are used once.
  Tenant& Set(const TenantPolicy& policy);
  // Does nothing without it.
  void Remove(quota::TenantId id);
  // Of the next tenant that is new.
  [[nodiscard]] quota::TenantId next_id() const { return {next_id_}; }

  // Null: there is none.
  [[nodiscard]] const Tenant* Find(quota::TenantId id) const;
  [[nodiscard]] const Tenant* Find(absl::string_view name) const;
  // The tenant whose uid it is; null: there is none.
  [[nodiscard]] const Tenant* OfUid(uint32_t uid) const;
  // By the socket that the peer has come through, its token, or its uid; else
  // the one of the name `by_default`, which may be empty.
  [[nodiscard]] absl::StatusOr<quota::TenantId> Of(
      const PeerIdentity& peer, absl::string_view by_default) const;

  // Pairs of an id and a tenant, by their ids; those from `id` on.
  [[nodiscard]] auto From(quota::TenantId id) const {
    return tenants_.lower_bound(id);
  }
  [[nodiscard]] auto begin() const { return tenants_.begin(); }
  [[nodiscard]] auto end() const { return tenants_.end(); }
  // The first whose name comes after that one; null: there is none.
  [[nodiscard]] const Tenant* FindAfter(absl::string_view name) const;
  [[nodiscard]] size_t size() const { return tenants_.size(); }

 private:
  void List(const Tenant& tenant);
  void Unlist(const Tenant& tenant);

  std::map<quota::TenantId, Tenant> tenants_;
  std::map<std::string, quota::TenantId, std::less<>> ids_;
  // How a peer is known. A uid is one tenant's (tenant_fit.h). A token is found by
  // its hash, which says nothing of how much of a guess was right.
  std::set<std::pair<uint32_t, quota::TenantId>> by_uid_;
  std::set<std::pair<size_t, quota::TenantId>> by_token_;
  uint64_t next_id_ = 1;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_TENANT_TABLE_H_
