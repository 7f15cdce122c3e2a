// Parking: since when a session is idle, as the broker sees it.
#include "ipc/gate_watch.h"

#include <algorithm>

namespace gmb::ipc {

void GateWatch::Look(GateWord word, absl::Time left_at, absl::Time now) {
  now = std::max(now, looked_at_);  // of looks in a row, one may be of earlier
  if (!word.consistent() || word.scopes() > 0) {
    idle_since_.reset();
  } else if (!idle_since_.has_value() || word.epoch() != epoch_) {
    idle_since_ = std::clamp(left_at, looked_at_, now);
  }
  epoch_ = word.epoch();
  looked_at_ = now;
}

}  // namespace gmb::ipc
