// Leases of the broker before this one: whose they are, and what was under way
// when it ended.
#include <chrono>
#include <utility>
#include <vector>

#include "broker/machine/lease_mover.h"
#include "broker/machine/lease_users.h"

namespace gmb::broker {
namespace {

// For mapping what is there: as in a restore.
constexpr quota::Nanoseconds kMapAgain = std::chrono::seconds(30);

}  // namespace

void LeaseMover::GoOnWith(Lease* lease, LeaseRecord::Place place, Turn& turn) {
  LeaseMove& move = lease->move.Edit({});
  move.may_terminate =
      state_.TenantAt(lease->tenant).policy.reclaim.may_terminate;
  // Their numbers were the last broker's: asked again, if it still matters.
  std::vector<uint64_t> asked;
  for (Mapping& mapping : move.mappings) {
    if (!std::exchange(mapping.asked, false)) continue;
    asked.push_back(mapping.session);
    // It may have mapped it.
    if (place == LeaseRecord::Place::kReturning) mapping.unmapped = false;
  }
  index_.Touch(lease);
  // The slabs that it was sent with its Grant may not have come.
  for (const Mapping& mapping : move.mappings) {
    if (!mapping.mapped && !lease->held->slabs.empty()) {
      sessions_.SendSlabs(&state_.SessionAt(mapping.session), *lease,
                          mapping.request, /*move=*/0, turn);
    }
  }
  const bool under_way = place == LeaseRecord::Place::kLeaving ||
                         place == LeaseRecord::Place::kReturning;
  // A gate is opened when all that its session has is back, in the turn that
  // would have recorded that. (Others of its group may have come since.)
  if (under_way && AllClosed(state_, *lease)) {
    // Of what was being filled the true copy is still in the host pool. One
    // that had never left has none, and is true as it is.
    if (place == LeaseRecord::Place::kReturning)
      move.torn = state_.host_books->TrueCopy(lease->id) != nullptr;
    return StartEviction(
        lease,
        turn.now() + quota::Nanoseconds(state_.options.planner.unmap_grace),
        move.may_terminate, turn);
  }
  // A private lease stays with its session, which may be writing by now:
  // nothing more is asked.
  if (place == LeaseRecord::Place::kHost || !lease->sharing->shared) return;
  // A shared one may be half filled, if the open gate is one that its client has
  // written over: it is filled once more before another user gets it. If the
  // last broker had opened that gate, that copies the same bytes.
  if (place == LeaseRecord::Place::kReturning)
    move.torn = state_.host_books->TrueCopy(lease->id) != nullptr;
  // Users that were asked to unmap it may be about to, so they are asked to map
  // it; and so are those that were asked to map it.
  for (const uint64_t session : asked) {
    state_.moving.Edit({}).insert({lease->tenant, lease->id});
    AskToMove(lease, move.MappingOf(session), turn.now() + kMapAgain, turn);
  }
}

}  // namespace gmb::broker
