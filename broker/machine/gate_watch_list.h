#ifndef GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_
#define GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "broker/machine/lease.h"
#include "broker/machine/session.h"
#include "ipc/gate_page.h"
#include "quota/units.h"

namespace gmb::broker {

struct State;

// Sessions that were at work when somebody lacked bytes. Nobody says when they
// park, so their gates' words are read: some in a turn.
//
// For a request within its guarantee all of them are read in less than 100 ms
// up to 8,000, and in less than 20 ms up to 1,000. Others, who have no claim to
// these bytes, cost less: there is one slice in 16 ms.
class GateWatchList {
 public:
  static constexpr size_t kAtOnce = 256;  // sessions, in a turn

  // Of those who use the lease, all who are at work: one that is parked already
  // would be found so at once, again and again.
  void Add(const State& state, const Lease& lease, quota::Instant now);
  void Remove(uint64_t session) { sessions_.erase(session); }
  void Clear() { sessions_.clear(); }
  // Whether a request within its guarantee lacks bytes.
  void SetUrgent(bool urgent, quota::Instant now);
  [[nodiscard]] size_t size() const { return sessions_.size(); }
  // Max: there is nobody to be watched.
  [[nodiscard]] quota::Instant due() const {
    return sessions_.empty() ? quota::Instant::Max() : due_;
  }
  // Reads the next ones; those that have parked are not watched any more.
  [[nodiscard]] std::vector<uint64_t> Parked(const State& state,
                                             quota::Instant now);
  // Words that were read, in all.
  [[nodiscard]] uint64_t reads() const { return reads_; }

 private:
  void Add(const Session& session);
  [[nodiscard]] quota::Nanoseconds Pause() const;
  std::vector<std::pair<uint64_t, const ipc::GateCells*>> Next();

  // With their words, which lie far apart: nothing else is touched in a round.
  absl::btree_map<uint64_t, std::shared_ptr<const ipc::GateCells>> sessions_;
  uint64_t next_ = 0;
  quota::Instant due_{};
  bool urgent_ = false;
  uint64_t reads_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GATE_WATCH_LIST_H_
