#ifndef GMB_TESTS_BROKER_MACHINE_RECORD_BOOK_H_
#define GMB_TESTS_BROKER_MACHINE_RECORD_BOOK_H_

#include <cstdint>
#include <map>
#include <string>

#include "broker/machine/records.h"

namespace gmb::broker {

// All that was recorded, as a journal would give it back.
class RecordBook {
 public:
  // The turn of an adoption names all that goes on.
  void DropAll() {
    sessions_.clear();
    leases_.clear();
  }
  void Apply(const RecordChanges& changes) {
    if (changes.head.has_value()) head_ = *changes.head;
    for (const PoolRecord& pool : changes.pools) pools_[pool.device] = pool;
    for (const uint64_t id : changes.ended_sessions) sessions_.erase(id);
    for (const uint64_t id : changes.ended_leases) leases_.erase(id);
    for (const SessionRecord& one : changes.sessions) sessions_[one.id] = one;
    for (const LeaseRecord& one : changes.leases) leases_[one.id] = one;
  }

  [[nodiscard]] Records All() const {
    Records all;
    all.head = head_;
    for (const auto& [device, pool] : pools_) all.pools.push_back(pool);
    for (const auto& [id, session] : sessions_) all.sessions.push_back(session);
    for (const auto& [id, lease] : leases_) all.leases.push_back(lease);
    return all;
  }

 private:
  HeadRecord head_;
  std::map<std::string, PoolRecord> pools_;
  std::map<uint64_t, SessionRecord> sessions_;
  std::map<uint64_t, LeaseRecord> leases_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_RECORD_BOOK_H_
