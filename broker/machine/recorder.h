#ifndef GMB_BROKER_MACHINE_RECORDER_H_
#define GMB_BROKER_MACHINE_RECORDER_H_

#include <cstdint>

#include "broker/machine/records.h"
#include "broker/machine/state.h"
#include "quota/units.h"

namespace gmb::broker {

// Writes down at the end of each turn what a successor needs of what the turn
// has changed. Each owner says so here when it has changed such a thing. Has no
// state of its own: made where it is used.
class Recorder {
 public:
  // Ids of leases and sessions are taken in blocks of so many.
  static constexpr uint64_t kIdsAtOnce = 1024;

  explicit Recorder(State& state) : state_(state) {}

  // Whether they are there or not.
  void Touch(quota::LeaseId lease);
  void TouchSession(uint64_t session);
  void TouchPool(quota::PoolId pool);
  // Goes on from another broker's.
  void SetHead(const HeadRecord& head);
  void Write(RecordChanges* changes);

 private:
  void WriteHead(RecordChanges* changes);

  State& state_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECORDER_H_
