#ifndef GMB_BROKER_MACHINE_SESSION_TABLE_H_
#define GMB_BROKER_MACHINE_SESSION_TABLE_H_

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "broker/machine/session.h"

namespace gmb::broker {

// The sessions that are open, by id and by token alike; a session stays where
// it is until it is removed.
//
// A value without threads or locks: the core changes it under its lock.
class SessionTable {
 public:
  // Of the next session that is new. Ids are used once.
  [[nodiscard]] uint64_t next_id() const { return next_id_; }
  // Ids up to it are not given out.
  void SkipTo(uint64_t id) { next_id_ = std::max(next_id_, id); }
  // A session that was made with that id.
  Session* Add(std::unique_ptr<Session> session);
  // Its session is not found by it any more.
  void ForgetToken(const std::string& token) { by_token_.erase(token); }
  // It must be there.
  Placed<Session> Remove(uint64_t id);

  // Null: there is none.
  [[nodiscard]] Session* Find(uint64_t id) const;
  // The one with the least id above that.
  [[nodiscard]] const Session* FindAfter(uint64_t id) const;
  [[nodiscard]] const Session* WithToken(absl::string_view token) const;

  // Pairs of an id and a session, by their ids.
  [[nodiscard]] auto begin() const { return sessions_.begin(); }
  [[nodiscard]] auto end() const { return sessions_.end(); }
  // Of tenants, and of operators.
  [[nodiscard]] size_t clients() const { return sessions_.size() - operators_; }
  [[nodiscard]] size_t operators() const { return operators_; }
  // By their ids.
  [[nodiscard]] const absl::btree_set<uint64_t>& OfTenant(
      quota::TenantId tenant) const;

  // Processes of tenants' last sessions that ended; they may live, and hold
  // slabs.
  [[nodiscard]] const std::deque<pid_t>& ended_clients() const {
    return ended_clients_;
  }
  // Those of the sessions that are open, and of how many.
  [[nodiscard]] const absl::btree_map<pid_t, uint32_t>& processes() const {
    return processes_;
  }

 private:
  absl::btree_map<uint64_t, Placed<Session>> sessions_;
  absl::flat_hash_map<quota::TenantId, absl::btree_set<uint64_t>> by_tenant_;
  absl::flat_hash_map<std::string, uint64_t> by_token_;
  std::deque<pid_t> ended_clients_;
  absl::btree_map<pid_t, uint32_t> processes_;
  size_t operators_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_TABLE_H_
