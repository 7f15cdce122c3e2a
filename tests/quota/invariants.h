// Watches an engine from outside: keeps its own list of leases and waiting
// requests from the events and effects alone, and checks after every step what
// must always be true.
#ifndef GMB_TESTS_QUOTA_INVARIANTS_H_
#define GMB_TESTS_QUOTA_INVARIANTS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quota/engine.h"

namespace gmb::quota {

class InvariantChecker {
 public:
  // An Acquire or a Restore that waits.
  struct Waiter {
    TenantId tenant;
    Instant deadline;
    PoolId pool;  // of an Acquire
    uint64_t bytes = 0;
    std::vector<LeaseId> leases;  // of a Restore
    uint64_t arrival = 0;
    Nanoseconds linger{0};  // it may be put off by so much at its deadline
  };

  explicit InvariantChecker(const Engine& engine) : engine_(engine) {}

  // After every Handle. Answers what is wrong, or an empty text.
  std::string Check(const Event& event, Instant now, const Effects& effects);
  // When all leases are released, nothing is missing or unreturned and nobody
  // waits: nothing may be left, and all that was asked for must be in force.
  std::string CheckDrained() const;

  const std::map<LeaseId, Granted>& leases() const { return leases_; }
  const std::set<LeaseId>& evicted() const { return evicted_; }
  const std::map<RequestId, Waiter>& waiting() const { return waiting_; }

 private:
  using TenantPoolKey = std::pair<PoolId, TenantId>;

  void Follow(const Event& event, const Effects& effects);
  void FollowEvent(const Event& event);
  // The bytes it asks for in a pool now; 0: nothing.
  uint64_t BytesIn(const Waiter& waiter, PoolId pool) const;
  void CheckAnswers(const Event& event, const Effects& effects);
  // Deadlines as late as they may be.
  void PutOff(const Event& event, Instant now);
  void CheckWaiters(Instant now);
  void CheckPool(PoolId pool, bool from_outside);
  void CheckTenantPool(PoolId pool, TenantId tenant, const PoolView& view);
  void CheckTotals();
  void Expect(bool condition, const std::string& text);

  const Engine& engine_;
  std::map<LeaseId, Granted> leases_;
  std::set<LeaseId> evicted_;
  std::set<LeaseId> hard_;
  std::map<RequestId, Waiter> waiting_;
  uint64_t last_arrival_ = 0;
  LeaseId joins_;  // left the device with the event
  std::set<LeaseId> seen_leases_;
  std::set<TenantPoolKey> pending_quotas_;  // told PENDING and not yet APPLIED
  std::set<PoolId> pending_pools_;
  std::map<PoolId, uint64_t> broken_bytes_;  // before the event
  std::map<PoolId, int64_t> overdrawn_bytes_;
  std::string problem_;
};

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_INVARIANTS_H_
