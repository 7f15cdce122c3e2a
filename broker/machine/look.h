#ifndef GMB_BROKER_MACHINE_LOOK_H_
#define GMB_BROKER_MACHINE_LOOK_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "broker/machine/group_gates.h"
#include "quota/planner.h"
#include "quota/reclaim.h"
#include "quota/shortlist.h"
#include "quota/units.h"

namespace gmb::broker {

class GateWatchList;
struct State;

// A plan is made of these: the leases that come first, and the bytes that the
// others could give.
struct Candidates {
  std::vector<quota::LeaseId> leases;
  uint64_t beyond_bytes = 0;
  uint64_t later_bytes = 0;
  quota::Instant retry_at = quota::Instant::Max();
  bool any_busy = false;
};

// How much of the leases is looked at, in leases: so many a second in the long
// run, and no more than a slice in one turn, so that nobody waits for it; and
// how many of them are taken in one turn.
class LookBudget {
 public:
  static constexpr uint64_t kSlice = 256;
  static constexpr int64_t kASecond = 100'000;
  static constexpr uint64_t kMostTaken = 64;

  // At the beginning of a turn.
  void BeginTurn(quota::Instant now);
  // Whether a look may begin. One that has begun goes on to its end.
  [[nodiscard]] bool MayBegin() const { return saved_ > 0; }
  // When one may.
  [[nodiscard]] quota::Instant BeginsAt() const;
  // The same for one who has just asked: not before 1 ms is over.
  [[nodiscard]] quota::Instant NextAfter(quota::Instant now) const {
    return std::max(BeginsAt(), now + std::chrono::milliseconds(1));
  }
  // Of the slice.
  [[nodiscard]] bool any_left() const { return left_ > 0; }
  void Spend(uint64_t leases);
  // Whether one more may be taken in this turn; and that it was.
  [[nodiscard]] bool MayTake() const { return taken_ < kMostTaken; }
  void CountTaken() { ++taken_; }

 private:
  static constexpr int64_t kMostSaved = 4096;

  quota::Instant at_{};
  int64_t saved_ = kMostSaved;
  uint64_t left_ = kSlice;
  uint64_t taken_ = 0;
};

// One demand's knowledge of the leases that may be taken for it. They are
// looked at tenant by tenant, slice by slice, over as many turns as that takes;
// then a plan is made of those that come first.
//
// When: as soon as something has changed that could help, and no more often
// than the budget allows. If nothing is heard of any change: after a while that
// grows with the work, as long as a plan does not serve the demand.
class Look {
 public:
  // `changes`: ReclaimIndex::changes of the demand's tenant or pool; of a
  // request, ReclaimIndex::gains of its pool.
  [[nodiscard]] bool IsDue(uint64_t changes, quota::Instant now) const {
    if (under_way()) return true;
    return now >= not_before_ && (changes > changes_ || now >= next_at_);
  }
  [[nodiscard]] bool under_way() const { return shortlist_.has_value(); }
  // When the next one is due if nothing changes.
  [[nodiscard]] quota::Instant next_at() const { return next_at_; }
  // Then, whatever changes until then.
  void Postpone(quota::Instant until) { next_at_ = not_before_ = until; }
  void Forget() { *this = Look(); }
  // There is no need to look before something changes, or a while is over. One
  // that is under way is given up.
  void Skip(uint64_t changes, quota::Instant now);

  void Begin(quota::Demand demand, uint64_t changes);
  // The budget that a look spends, and where it puts gates that are in use.
  struct Costs {
    LookBudget& budget;
    GateWatchList& watch;
  };
  // Whether all have been looked at, and the look is over.
  [[nodiscard]] bool GoOn(const State& state, quota::PoolId pool,
                          quota::Instant now, Costs costs);
  // Leases whose session has parked since the last look, or during this one: a
  // further plan sees them at once, beside those that the last one has found,
  // and so many changes more are known. A change before that which is not known
  // keeps its look, which nobody waits for; so do they if not all of them have
  // room here. False: there is none of them, or there was no look.
  struct Changes {
    uint64_t before = 0;
    uint64_t after = 0;
  };
  bool Add(const std::vector<quota::LeaseId>& leases, Changes changes);
  struct Found {
    quota::Plan plan;
    bool any_busy = false;
    // It is of what an earlier look has left, which had no room for all: an empty
    // one says nothing.
    bool of_the_rest = false;
    // See PlanMade.
    uint64_t looks = 0;
    uint64_t trimmers_from = 0;
  };
  // `demand`: as it is by now.
  [[nodiscard]] Found MakePlan(const State& state, const quota::Demand& demand,
                               quota::Instant now);
  // Nothing of the plan could be done: when to look again.
  void Wait(quota::Instant now, quota::Instant retry_at);
  // Something of the plan is being done, and of those that were found more may
  // be: further plans need no further look, nor the end of this one. Where only
  // the first of them were found, the others are looked for in the end.
  void PlanOn() {
    pause_ = quota::Nanoseconds(0);
    plans_on_ = true;
    if (candidates_.beyond_bytes > 0) changes_ = 0;
  }
  [[nodiscard]] bool plans_on() const { return plans_on_; }
  // How often it was looked, to the end.
  [[nodiscard]] uint64_t times() const { return times_; }

 private:
  void End();

  std::optional<quota::Shortlist> shortlist_;  // while it is under way
  GroupGates groups_;                          // likewise
  Candidates candidates_;                      // of the last one
  std::vector<quota::LeaseId> added_;          // during this one
  bool plans_on_ = false;
  quota::TenantId only_{};  // 0: all
  // The next to be looked at.
  quota::TenantId tenant_{};
  quota::LeaseId lease_{};
  uint64_t changes_ = 0;
  uint64_t seen_ = 0;  // leases, in the last one
  quota::Instant next_at_{};
  quota::Instant not_before_{};
  quota::Nanoseconds pause_{0};
  uint64_t times_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LOOK_H_
