// The engine has granted the bytes of a wake, or of a part of it: these leases
// come back, and stay until the session is in.
#include <algorithm>
#include <chrono>
#include <vector>

#include "broker/machine/away.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/waker.h"
#include "quota/candidate.h"

namespace gmb::broker {
namespace {

// For a wake, beside its copies; and with them at most.
constexpr quota::Nanoseconds kWakeTime = std::chrono::seconds(1);
constexpr quota::Nanoseconds kMostWakeTime = std::chrono::seconds(30);
// After a wake that has not come to its end the next one has as much time only so
// much later: one that fails again and again protects nobody for ever.
constexpr quota::Nanoseconds kAgainAfter = std::chrono::seconds(10);

}  // namespace

// The rest is on its way off the device. Nobody may take meanwhile what is back:
// it would have to come a second time.
void Waker::OnRestoredInPart(const quota::Restored& restored, Turn& turn) {
  const auto returning = state_.restoring->find(restored.request);
  if (returning != state_.restoring->end()) {
    Session* session = &state_.SessionAt(returning->second.session);
    KeepWhatComes(MembersOf(state_, session), turn.now());
  }
  BringBack(restored.leases, turn);
}

void Waker::KeepWhatComes(const std::vector<Session*>& members,
                          quota::Instant now) {
  uint64_t bytes = 0;
  for (const Session* member : members) bytes += *member->leased_bytes;
  const quota::Nanoseconds copy =
      std::min(quota::CopyTime(bytes, state_.options.planner), kMostWakeTime);
  const quota::Instant until =
      now + std::min(kWakeTime + 2 * copy, kMostWakeTime);
  for (Session* member : members) {
    // From its first part on.
    const quota::Instant before = member->waking->coming_until;
    if (before == quota::Instant{} || now >= before + kAgainAfter)
      member->waking.Edit({}).coming_until = until;
  }
}

void Waker::OnRestored(const quota::Restored& restored, Turn& turn) {
  if (restored.in_part) return OnRestoredInPart(restored, turn);
  const std::optional<Returning> returning = recalls_.End(restored.request);
  if (!returning.has_value()) return BringBack(restored.leases, turn);
  if (returning->for_attach.has_value())
    return sharing_.OnBackForAttach(*returning->for_attach, turn);
  Session* session = &state_.SessionAt(returning->session);
  session->waking.Edit({}).restoring.reset();
  const std::vector<Session*> members = MembersOf(state_, session);
  KeepWhatComes(members, turn.now());
  std::vector<quota::LeaseId> back = AwayOf(state_, members).evicted;
  // Leases that were asked for and have been left meanwhile are charged, so
  // they come.
  back.insert(back.end(), restored.leases.begin(), restored.leases.end());
  BringBack(back, turn);
  // It may have left the only one that it waited for.
  AdvanceRestore(session, turn);
}

// Those of them that are charged to the device. Also for a session that has
// left, or has withdrawn its Restore, since the engine decided: the leases come
// back all the same, for others or to be released.
void Waker::BringBack(const std::vector<quota::LeaseId>& leases, Turn& turn) {
  for (const quota::LeaseId id : leases) {
    const auto lease = state_.leases->find(id);
    // A group's members may share one.
    if (lease != state_.leases->end() &&
        lease->second->move->residence == Residence::kEvicted &&
        !state_.engine->Lease(id)->evicted) {
      mover_.StartRestore(lease->second.get(), turn);
    }
  }
}

}  // namespace gmb::broker
