// One tenant's requests in the queue of a pool: which of them is next.
#include "quota/wait_line.h"

#include <algorithm>

namespace gmb::quota {
namespace {

int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }

}  // namespace

WaitLine::Waiters::Figures WaitLine::FiguresOf(const Ask& ask) {
  const int64_t bytes = Signed(ask.bytes);
  return {bytes,
          ask.restore ? kNone : bytes,
          ask.restore ? bytes : kNone,
          ask.hard ? bytes : kNone,
          0,
          -bytes,
          ask.hard ? -bytes : 0};
}

void WaitLine::SetLackingElsewhere(uint64_t place, bool lacking) {
  const Waiter key{.place = place, .request = {}};
  Waiters::Figures figures = waiters_.FiguresOf(key);
  const int64_t figure = lacking ? 1 : 0;
  if (figures[kElsewhere] == figure) return;
  figures[kElsewhere] = figure;
  waiters_.Update(key, figures);
}

WaitLine::Need WaitLine::NeedOf(const Waiter& waiter) const {
  const Waiters::Figures& figures = waiters_.FiguresOf(waiter);
  return {.bytes = figures[kBytes],
          .beyond_bytes =
              figures[kHardBytes] == kNone
                  ? 0
                  : figures[kHardBytes] - Signed(standing_.hard_room_bytes)};
}

const WaitLine::Waiter* WaitLine::Front() const {
  return waiters_.FirstWithin(LimitBounds());
}

const WaitLine::Waiter* WaitLine::BorrowingFront() const {
  Waiters::Figures bounds = LimitBounds();
  bounds[kMinusBytes] = -Signed(standing_.guarantee_left_bytes) - 1;
  return waiters_.FirstWithin(bounds);
}

const WaitLine::Waiter* WaitLine::FrontWithin(int64_t free_bytes) const {
  Waiters::Figures bounds = LimitBounds();
  bounds[kBytes] = std::min(free_bytes, Signed(standing_.guarantee_left_bytes));
  bounds[kElsewhere] = 0;
  return waiters_.FirstWithin(bounds);
}

const WaitLine::Waiter* WaitLine::FrontFitting(int64_t free_bytes,
                                               int64_t slack_bytes) const {
  Waiters::Figures bounds = LimitBounds();
  bounds[kBytes] = free_bytes;
  bounds[kHardBytes] = slack_bytes + Signed(standing_.hard_room_bytes);
  bounds[kElsewhere] = 0;
  return waiters_.FirstWithin(bounds);
}

bool WaitLine::AnyWithinGuarantee() const {
  Waiters::Figures bounds = LimitBounds();
  bounds[kBytes] = Signed(standing_.guarantee_left_bytes);
  return waiters_.FirstWithin(bounds) != nullptr;
}

}  // namespace gmb::quota
