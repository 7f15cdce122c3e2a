#ifndef GMB_BROKER_MACHINE_TURN_H_
#define GMB_BROKER_MACHINE_TURN_H_

#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "broker/machine/effect.h"
#include "broker/machine/fact.h"
#include "broker/machine/records.h"
#include "broker/machine/session.h"
#include "quota/units.h"

namespace gmb::broker {

// One turn of the machine: when it happens, and what is to be done because of
// it, in order: effects for others, and work of the machine's own, which it
// drains before the turn ends. Time stands still within a turn.
//
// The machine has no lock of its own. The maker of a Turn holds the lock that
// guards the machine: so a function that is given one may change the state.
class Turn {
 public:
  // `held_up`: the process was stopped, or not let run, until just now.
  Turn(quota::Instant now, absl::Time wall, bool held_up = false);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] quota::Instant now() const { return now_; }
  [[nodiscard]] absl::Time wall() const { return wall_; }
  [[nodiscard]] bool held_up() const { return held_up_; }

  void Add(Effect effect);
  // Stamped with the wall time.
  void Publish(v1::Event event);
  // The turn's changes of what is recorded.
  [[nodiscard]] RecordChanges& records() { return records_; }
  // A session that has ended is destroyed once the lock is given up: its gate's
  // page is unmapped then, and its process's fd closed.
  void Bury(Placed<Session> session);

  // The machine's own work goes depth first: what a piece of it queues comes,
  // in its order, before everything that was queued earlier.
  void Queue(Work work);
  // The turn is for a request of this tenant. So many leases of a tenant were
  // looked at beyond those that a request names: the one who asks pays for his
  // own.
  void SetAsker(quota::TenantId tenant) { asker_ = tenant; }
  void Spend(quota::TenantId tenant, uint64_t leases) {
    if (tenant == asker_) spent_ += leases;
  }
  [[nodiscard]] uint64_t spent() const { return spent_; }
  // The next piece, until the next call; null when all is done, or the turn has
  // done too much.
  [[nodiscard]] const Work* NextWork();
  // A turn that does more fails its test: it goes round in circles.
  void LimitSteps(uint64_t steps) { most_steps_ = steps; }
  [[nodiscard]] bool exhausted() const { return steps_ >= most_steps_; }

  [[nodiscard]] std::vector<Effect> TakeEffects();
  [[nodiscard]] RecordChanges TakeRecords();
  [[nodiscard]] std::vector<Placed<Session>> TakeBuried();

 private:
  const quota::Instant now_;
  const absl::Time wall_;
  const bool held_up_;
  std::vector<Effect> effects_;
  RecordChanges records_;
  std::list<Work> work_;
  std::list<Work> fresh_;  // queued by the piece that is being done
  std::list<Work> doing_;
  uint64_t steps_ = 0;
  uint64_t most_steps_ = std::numeric_limits<uint64_t>::max();
  std::vector<Placed<Session>> buried_;
  std::optional<quota::TenantId> asker_;
  uint64_t spent_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_TURN_H_
