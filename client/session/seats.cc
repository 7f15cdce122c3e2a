// Calls that wait read for themselves; the session's thread sleeps meanwhile.
#include "client/session/seats.h"

#include <utility>

#include "absl/status/statusor.h"

namespace gmb::internal {
namespace {

constexpr int kSeats = 4;

}  // namespace

Seats::Seats(SessionWait* wait) : wait_(*wait) {
  base::MutexLock lock(&mu_);
  spare_.reserve(kSeats);
  // One is there from the start: nearly always it is the only one.
  if (absl::StatusOr<ipc::Wakeup> first = ipc::Wakeup::Create(); first.ok())
    spare_.push_back(*std::move(first));
}

Seats::Seat::Seat(Seats* seats) : seats_(*seats) {
  base::MutexLock lock(&seats_.mu_);
  if (seats_.taken_ == kSeats) return;
  if (!seats_.spare_.empty()) {
    wakeup_ = std::move(seats_.spare_.back());
    seats_.spare_.pop_back();
  } else if (absl::StatusOr<ipc::Wakeup> own = ipc::Wakeup::Create();
             own.ok()) {
    wakeup_ = *std::move(own);
  } else {
    return;
  }
  if (seats_.taken_++ == 0) seats_.wait_.ListenAtSockets(false);
}

// A word that came too late is one for the next who sits here: it looks once
// more than it needs to.
Seats::Seat::~Seat() {
  if (!wakeup_.has_value()) return;
  base::MutexLock lock(&seats_.mu_);
  if (--seats_.taken_ == 0) seats_.wait_.ListenAtSockets(true);
  seats_.spare_.push_back(*std::move(wakeup_));
}

}  // namespace gmb::internal
