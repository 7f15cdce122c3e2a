#ifndef GMB_BROKER_MACHINE_SESSION_GROUPS_H_
#define GMB_BROKER_MACHINE_SESSION_GROUPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/session.h"
#include "quota/planner.h"
#include "quota/units.h"

namespace gmb::broker {

// Groups: sessions of one tenant that are closed and restored together. A
// session names its own; it must leave before it ends.
//
// A value without threads or locks: the core changes it under its lock.
class SessionGroups {
 public:
  // An empty name changes nothing.
  [[nodiscard]] absl::Status Join(Session* session, const std::string& name);
  void Leave(Session* session);

  // Of its group, by their ids; itself alone without one.
  [[nodiscard]] std::vector<Session*> Members(Session* session) const;
  // The first member's id names the group for the planner, which only compares.
  [[nodiscard]] quota::GroupId IdOf(const Session& session) const;

 private:
  using Key = std::pair<quota::TenantId, std::string>;
  std::map<Key, std::map<uint64_t, Session*>> groups_;
};

// The gates of all or of none. False: one has just left its parking place.
[[nodiscard]] bool CloseAll(const std::vector<Session*>& sessions);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_GROUPS_H_
