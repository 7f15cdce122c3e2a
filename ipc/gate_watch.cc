// Parking: since when a session is idle, as the broker sees it.
#include "ipc/gate_watch.h"

#include <algorithm>

namespace gmb::ipc {

namespace {

// The last scope's stamp is of a coarse clock, and up to this much early.
constexpr absl::Duration kTick = absl::Milliseconds(10);

// The newest counts for a quarter.
void Average(absl::Duration seen, std::optional<absl::Duration>& usual) {
  constexpr double kNew = 0.25;
  usual = usual.has_value() ? *usual + kNew * (seen - *usual) : seen;
}

}  // namespace

void GateWatch::Look(GateWord word, const Stamps& stamps, absl::Time now) {
  now = std::max(now, looked_at_);  // of looks in a row, one may be of earlier
  if (!word.consistent() || word.scopes() > 0) {
    idle_since_.reset();
  } else if (!idle_since_.has_value() || word.epoch() != epoch_) {
    idle_since_ = std::clamp(stamps.left_at, looked_at_, now);
  }
  if (word.epoch() != epoch_) SeeUse(word.epoch(), now);
  // A wake is stamped before the word says so: the end is then of the use
  // before.
  const bool over = stamps.left_at + kTick >= stamps.woken_at;
  if (word.parked() && stamps.woken_at != woken_at_ && over)
    SeeLength(stamps, now);
  epoch_ = word.epoch();
  looked_at_ = now;
}

void GateWatch::SeeUse(uint64_t epoch, absl::Time now) {
  const uint64_t times = (epoch - epoch_) & GateWord::kMaxEpoch;
  if (used_at_.has_value()) {
    // A client that writes odd epochs says odd things of itself alone.
    Average((now - *used_at_) / static_cast<double>(times), gap_);
  }
  used_at_ = now;
}

// The stamps may be anything.
void GateWatch::SeeLength(const Stamps& stamps, absl::Time now) {
  woken_at_ = stamps.woken_at;
  Average(std::clamp(stamps.left_at - stamps.woken_at, absl::ZeroDuration(),
                     now - began_at_),
          use_);
}

std::optional<absl::Duration> GateWatch::usual_gap() const {
  if (!gap_.has_value()) return std::nullopt;
  return std::max(*gap_, looked_at_ - *used_at_);
}

}  // namespace gmb::ipc
