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
  if (word.epoch() != epoch_) SeeUse(word.epoch(), now);
  epoch_ = word.epoch();
  looked_at_ = now;
}

void GateWatch::SeeUse(uint64_t epoch, absl::Time now) {
  const uint64_t times = (epoch - epoch_) & GateWord::kMaxEpoch;
  if (used_at_.has_value()) {
    // A client that writes odd epochs says odd things of itself alone.
    const absl::Duration gap = (now - *used_at_) / static_cast<double>(times);
    constexpr double kNew = 0.25;
    gap_ = gap_.has_value() ? *gap_ + kNew * (gap - *gap_) : gap;
  }
  used_at_ = now;
}

std::optional<absl::Duration> GateWatch::usual_gap() const {
  if (!gap_.has_value()) return std::nullopt;
  return std::max(*gap_, looked_at_ - *used_at_);
}

}  // namespace gmb::ipc
