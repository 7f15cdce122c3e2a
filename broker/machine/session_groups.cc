#include "broker/machine/session_groups.h"

namespace gmb::broker {

void SessionGroups::Join(quota::TenantId tenant, const std::string& name,
                         uint64_t session) {
  groups_[{tenant, name}].insert(session);
}

void SessionGroups::Leave(quota::TenantId tenant, const std::string& name,
                          uint64_t session) {
  const auto group = groups_.find({tenant, name});
  if (group == groups_.end()) return;
  group->second.erase(session);
  if (group->second.empty()) groups_.erase(group);
}

const std::set<uint64_t>& SessionGroups::Members(
    quota::TenantId tenant, const std::string& name) const {
  static const std::set<uint64_t> kNone;
  const auto group = groups_.find({tenant, name});
  return group == groups_.end() ? kNone : group->second;
}

}  // namespace gmb::broker
