#ifndef GMB_BROKER_MACHINE_SESSION_GROUPS_H_
#define GMB_BROKER_MACHINE_SESSION_GROUPS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "quota/planner.h"
#include "quota/units.h"

namespace gmb::broker {

// Groups: sessions of one tenant that are closed and restored together, by
// their ids. A session must leave before it ends.
//
// A value without threads or locks: the core changes it under its lock.
class SessionGroups {
 public:
  void Join(quota::TenantId tenant, const std::string& name, uint64_t session);
  void Leave(quota::TenantId tenant, const std::string& name, uint64_t session);
  // Whether the member's gate is off; a new one's is not.
  void SetOff(quota::TenantId tenant, const std::string& name, uint64_t session,
              bool off);

  // Empty: there is no such group.
  [[nodiscard]] const std::set<uint64_t>& Members(
      quota::TenantId tenant, const std::string& name) const;
  // Whether nobody's gate is off.
  [[nodiscard]] bool IsOn(quota::TenantId tenant,
                          const std::string& name) const;

 private:
  using Name = std::pair<quota::TenantId, std::string>;
  struct Group {
    std::set<uint64_t> members;
    std::set<uint64_t> off;  // of them
  };
  std::map<Name, Group> groups_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_GROUPS_H_
