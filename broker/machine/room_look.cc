// Acquires that wait are judged anew, some at a time.
#include "broker/machine/room_look.h"

namespace gmb::broker {

void RoomLook::Begin() {
  under_way_ = true;
  from_ = next_;
  went_round_ = false;
}

void RoomLook::Notice(uint64_t gains) {
  if (!IsNews(gains)) return;
  gains_ = gains;
  Begin();
}

// One that comes meanwhile has the last number, and was judged when it came.
std::optional<quota::RequestId> RoomLook::Next(const Requests& waiting) {
  if (!under_way_) return std::nullopt;
  auto next = waiting.lower_bound(next_);
  if (next == waiting.end() && !went_round_) {
    went_round_ = true;
    next = waiting.begin();
  }
  if (next == waiting.end() || (went_round_ && next->first >= from_)) {
    under_way_ = false;
    next_ = {};
    return std::nullopt;
  }
  next_ = quota::RequestId{next->first.value + 1};
  return next->first;
}

}  // namespace gmb::broker
