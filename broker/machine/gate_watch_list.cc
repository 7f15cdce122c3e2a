// Sessions that park while somebody waits for memory.
#include "broker/machine/gate_watch_list.h"

#include <algorithm>
#include <chrono>

#include "broker/machine/lease_users.h"
#include "broker/machine/state.h"

namespace gmb::broker {
namespace {

constexpr size_t kAtOnce = 256;
// Between two slices: with few sessions there is more time.
constexpr quota::Nanoseconds kPause = std::chrono::microseconds(2500);
constexpr quota::Nanoseconds kLongPause = std::chrono::milliseconds(4);
constexpr size_t kFew = 1024;

}  // namespace

void GateWatchList::Add(const State& state, const Lease& lease) {
  for (const Session* user : UsersOf(state, lease)) sessions_.insert(user->id);
}

std::vector<uint64_t> GateWatchList::Parked(const State& state,
                                            quota::Instant now) {
  std::vector<uint64_t> parked;
  if (now < due()) return parked;
  auto it = sessions_.lower_bound(next_);
  for (size_t seen = std::min(kAtOnce, sessions_.size()); seen > 0; --seen) {
    if (it == sessions_.end()) it = sessions_.begin();
    const Session* session = state.sessions->Find(*it);
    const quota::Gate gate =
        session == nullptr ? quota::Gate::kOff : session->gate->Look(now);
    if (gate == quota::Gate::kActive) {
      ++it;
      continue;
    }
    if (gate == quota::Gate::kParked) parked.push_back(*it);
    it = sessions_.erase(it);
  }
  next_ = it == sessions_.end() ? 0 : *it;
  due_ = now + (sessions_.size() <= kFew ? kLongPause : kPause);
  return parked;
}

}  // namespace gmb::broker
