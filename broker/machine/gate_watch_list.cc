// Sessions that park while somebody waits for memory.
#include "broker/machine/gate_watch_list.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "broker/machine/lease_users.h"
#include "broker/machine/state.h"

namespace gmb::broker {
namespace {

// In which all are read, as long as they are few enough for that.
constexpr quota::Nanoseconds kRound = std::chrono::milliseconds(16);
// Between two slices.
constexpr quota::Nanoseconds kShortestPause = std::chrono::microseconds(2500);

}  // namespace

void GateWatchList::Add(const Session& session) {
  sessions_.try_emplace(session.id, session.gate->cells());
}

void GateWatchList::Add(const State& state, const Lease& lease,
                        quota::Instant now) {
  if (!lease.sharing->shared && lease.move->mappings.size() == 1) {
    const Session& holder =
        state.SessionAt(lease.move->mappings.front().session);
    if (holder.group->empty()) return Add(holder);
  }
  for (const Session* user : UsersOf(state, lease)) {
    if (user->gate->Look(now) == quota::Gate::kActive) Add(*user);
  }
}

quota::Nanoseconds GateWatchList::Pause() const {
  if (!urgent_) return kRound;
  const size_t slices = (sessions_.size() + kAtOnce - 1) / kAtOnce;
  return std::max(kShortestPause,
                  kRound / static_cast<int64_t>(std::max<size_t>(slices, 1)));
}

void GateWatchList::SetUrgent(bool urgent, quota::Instant now) {
  if (std::exchange(urgent_, urgent) == urgent || !urgent) return;
  due_ = std::min(due_, now + Pause());
}

// The words are fetched together, so that they are waited for once.
std::vector<std::pair<uint64_t, const ipc::GateCells*>> GateWatchList::Next() {
  std::vector<std::pair<uint64_t, const ipc::GateCells*>> next;
  next.reserve(kAtOnce);
  auto it = sessions_.lower_bound(next_);
  for (size_t left = std::min(kAtOnce, sessions_.size()); left > 0; --left) {
    if (it == sessions_.end()) it = sessions_.begin();
    __builtin_prefetch(&it->second->word);
    next.emplace_back(it->first, it->second.get());
    ++it;
  }
  next_ = it == sessions_.end() ? 0 : it->first;
  return next;
}

std::vector<uint64_t> GateWatchList::Parked(const State& state,
                                            quota::Instant now) {
  std::vector<uint64_t> parked;
  if (now < due()) return parked;
  for (const auto& [id, cells] : Next()) {
    ++reads_;
    // One that is not may have parked, or was closed or turned off.
    if (SessionGate::IsOpen(*cells)) continue;
    const Session* session = state.sessions->Find(id);
    const quota::Gate gate =
        session == nullptr ? quota::Gate::kOff : session->gate->Look(now);
    if (gate == quota::Gate::kActive) continue;
    if (gate == quota::Gate::kParked) parked.push_back(id);
    sessions_.erase(id);
  }
  due_ = now + Pause();
  return parked;
}

}  // namespace gmb::broker
