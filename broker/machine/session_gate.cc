// A session's gate as the broker sees it: whether its leases are in use, and
// whether they may be evicted.
#include "broker/machine/session_gate.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "absl/time/time.h"
#include "ipc/gate_control.h"

namespace gmb::broker {
namespace {

// The core's clock and the page's stamp are both CLOCK_MONOTONIC.
absl::Time TimeOf(quota::Instant instant) {
  return absl::FromUnixNanos(instant.ns);
}

absl::Time TimeOf(const std::atomic<uint64_t>& stamp) {
  const uint64_t ns = stamp.load(std::memory_order_relaxed);
  return absl::FromUnixNanos(static_cast<int64_t>(std::min<uint64_t>(
      ns, static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))));
}

ipc::GateWatch::Stamps StampsOf(const ipc::GateCells& cells) {
  ipc::GateWatch::Stamps stamps{.left_at = TimeOf(cells.left_at_ns)};
  const absl::Time woken_at = TimeOf(cells.woken_at_ns);
  if (woken_at != absl::UnixEpoch()) stamps.woken_at = woken_at;
  return stamps;
}

std::optional<quota::Nanoseconds> ToNanoseconds(
    std::optional<absl::Duration> duration) {
  if (!duration.has_value()) return std::nullopt;
  return quota::Nanoseconds(absl::ToInt64Nanoseconds(*duration));
}

}  // namespace

SessionGate::SessionGate(std::shared_ptr<ipc::GateCells> cells,
                         quota::Instant now)
    : cells_(std::move(cells)), watch_(TimeOf(now)) {}

bool SessionGate::IsOpen(const ipc::GateCells& cells) {
  return ipc::LookAtGate(cells).state() == ipc::GateState::kOpen;
}

quota::Gate SessionGate::Look(quota::Instant now) const {
  if (closed_.has_value()) return quota::Gate::kClosed;
  // The stamps after the word: that of a scope which left in between is newer,
  // and clamped to this look.
  seen_ = ipc::LookAtGate(*cells_);
  watch_.Look(seen_, StampsOf(*cells_), TimeOf(now));
  if (!on_) return quota::Gate::kOff;
  return seen_.parked() ? quota::Gate::kParked : quota::Gate::kActive;
}

std::optional<quota::Instant> SessionGate::idle_since() const {
  if (!watch_.idle_since().has_value()) return std::nullopt;
  return quota::Instant{absl::ToUnixNanos(*watch_.idle_since())};
}

std::optional<quota::Nanoseconds> SessionGate::usual_gap() const {
  return ToNanoseconds(watch_.usual_gap());
}

std::optional<quota::Nanoseconds> SessionGate::usual_use() const {
  return ToNanoseconds(watch_.usual_use());
}

bool SessionGate::UnusedSince(uint64_t epoch) const {
  return ipc::CopyHolds(*cells_, epoch);
}

bool SessionGate::Close(Key<Gates> /*key*/) {
  if (closed_.has_value()) return true;
  seen_ = ipc::LookAtGate(*cells_);
  if (!ipc::CloseGate(*cells_, seen_)) return false;
  closed_ = *ipc::AfterClose(seen_);
  pausing_until_.reset();
  return true;
}

bool SessionGate::Reopen(Key<Gates> /*key*/) {
  if (!closed_.has_value()) return true;
  const ipc::GateWord closed = *std::exchange(closed_, std::nullopt);
  return ipc::ReopenGate(*cells_, closed);
}

// A client that wrote it itself harms nobody else: the memory that it may use
// is its own, and is asked of it before it is another's.
void SessionGate::Adopt(bool on, Key<Gates> /*key*/) {
  on_ = on;
  ipc::WithdrawPause(*cells_);
  seen_ = ipc::LookAtGate(*cells_);
  if (on && seen_.state() == ipc::GateState::kClosed) closed_ = seen_;
}

void SessionGate::Pause(quota::Instant until, Key<Gates> /*key*/) {
  pausing_until_ = until;
  ipc::PauseGate(*cells_);
}

void SessionGate::Withdraw(Key<Gates> /*key*/) {
  pausing_until_.reset();
  ipc::WithdrawPause(*cells_);
}

}  // namespace gmb::broker
