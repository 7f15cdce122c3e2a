// The gates of sessions that are paused together, at one moment.
#include "broker/machine/pause_look.h"

#include <algorithm>
#include <chrono>

#include "broker/machine/lease_users.h"

namespace gmb::broker {
namespace {

// One that has parked may wait so long for the others of its group, to be let in
// again. Twice as long after each pause that has ended by that: scopes that take
// longer have their time in the end.
constexpr quota::Nanoseconds kHeldBack = std::chrono::milliseconds(100);
constexpr uint32_t kMostDoublings = 20;  // longer than any pause

// Of one that has parked: since when it waits to go on. Max: it does not.
quota::Instant WaitsSince(const Session& session) {
  const auto& since = session.waking->waits_since;
  if (session.waking->restores.empty() || !since.has_value())
    return quota::Instant::Max();
  // A scope of it may have asked while another one was in.
  return std::max(*since, session.gate->idle_since().value_or(*since));
}

}  // namespace

PauseLook::PauseLook(const State& state, const std::vector<Session*>& sessions,
                     quota::Instant now)
    : state_(state), now_(now) {
  for (const Session* session : sessions) {
    const quota::Gate gate = session->gate->Look(now);
    least_ = std::min(least_, gate);
    until_ = std::min(until_, session->gate->pausing_until().value_or(until_));
    Group& group = groups_[KeyOf(*session)];
    group.until = std::min(
        group.until, session->gate->pausing_until().value_or(group.until));
    group.at_work |= gate < quota::Gate::kParked;
    group.held_up = std::max(group.held_up, session->gate->held_up());
    group.pause_grace =
        state.TenantAt(*session->tenant).policy.reclaim.pause_grace;
    if (gate == quota::Gate::kParked)
      group.waits_since = std::min(group.waits_since, WaitsSince(*session));
  }
}

bool PauseLook::AnyHeldUp() const {
  return std::any_of(groups_.begin(), groups_.end(), [this](const auto& entry) {
    return IsHeldUp(entry.second);
  });
}

// A group has the id of its first member: nobody else's is that of a session that
// is in none.
uint64_t PauseLook::KeyOf(const Session& session) const {
  const quota::GroupId group = GroupOf(state_, session);
  return group == quota::GroupId{} ? session.id : group.value;
}

bool PauseLook::IsHeldUp(const Group& group) const {
  if (!IsWaitedIn(group)) return false;
  const quota::Nanoseconds held_back =
      kHeldBack * (int64_t{1} << std::min(group.held_up, kMostDoublings));
  return now_ >= group.waits_since + std::min(held_back, group.pause_grace);
}

}  // namespace gmb::broker
