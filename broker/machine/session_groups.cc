// Groups of sessions, whose leases are evicted and restored together.
#include "broker/machine/session_groups.h"

namespace gmb::broker {

void SessionGroups::Join(quota::TenantId tenant, const std::string& name,
                         uint64_t session) {
  groups_[{tenant, name}].members.insert(session);
}

void SessionGroups::Leave(quota::TenantId tenant, const std::string& name,
                          uint64_t session) {
  const auto group = groups_.find({tenant, name});
  if (group == groups_.end()) return;
  group->second.members.erase(session);
  group->second.off.erase(session);
  if (group->second.members.empty()) groups_.erase(group);
}

void SessionGroups::SetOff(quota::TenantId tenant, const std::string& name,
                           uint64_t session, bool off) {
  const auto group = groups_.find({tenant, name});
  if (group == groups_.end()) return;
  if (off) {
    group->second.off.insert(session);
  } else {
    group->second.off.erase(session);
  }
}

bool SessionGroups::IsOn(quota::TenantId tenant,
                         const std::string& name) const {
  const auto group = groups_.find({tenant, name});
  return group == groups_.end() || group->second.off.empty();
}

const std::set<uint64_t>& SessionGroups::Members(
    quota::TenantId tenant, const std::string& name) const {
  static const std::set<uint64_t> kNone;
  const auto group = groups_.find({tenant, name});
  return group == groups_.end() ? kNone : group->second.members;
}

}  // namespace gmb::broker
