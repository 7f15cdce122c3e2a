#ifndef GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_
#define GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_set.h"
#include "broker/machine/lease.h"
#include "quota/units.h"

namespace gmb::broker {

struct State;

// Sessions that were at work when somebody lacked bytes. Nobody says when they
// park, so their gates' words are read: some in a turn, all of them in less
// than 100 ms up to 8,000, and in less than 20 ms up to 1,000.
class GateWatchList {
 public:
  // All who use the lease.
  void Add(const State& state, const Lease& lease);
  void Remove(uint64_t session) { sessions_.erase(session); }
  void Clear() { sessions_.clear(); }
  [[nodiscard]] size_t size() const { return sessions_.size(); }
  // Max: there is nobody to be watched.
  [[nodiscard]] quota::Instant due() const {
    return sessions_.empty() ? quota::Instant::Max() : due_;
  }
  // Reads the next ones; those that have parked are not watched any more.
  [[nodiscard]] std::vector<uint64_t> Parked(const State& state,
                                             quota::Instant now);

 private:
  absl::btree_set<uint64_t> sessions_;
  uint64_t next_ = 0;
  quota::Instant due_{};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_
