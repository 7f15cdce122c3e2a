// The copies that are made ahead of need (backer.cc).
#include <chrono>
#include <utility>

#include "broker/machine/backed.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {

// Whole slabs, as many as there are bytes for. How much is being copied.
uint64_t HostDesk::StartBacking(Lease* lease, uint64_t bytes,
                                quota::Instant now, Turn& turn) {
  // A scope may have come in since it was chosen.
  if (GateOver(state_, *lease, now) < quota::Gate::kParked) return 0;
  if (!ReserveRoom(*lease)) {
    LeaveAlone(lease, now);
    return 0;
  }
  lease->copy.Edit({}).backed_slabs = BackedSlabs(state_, *lease);
  if (lease->copy->backed_slabs == 0) {
    state_.host_books.Edit({}).MarkUntrue(lease->id);
    Recorder(state_).Touch(lease->id);
    if (!lease->sharing->shared)
      lease->copy.Edit({}).backed_epoch =
          state_.SessionAt(lease->request.session).gate->epoch();
  }
  const std::vector<Slab>& slabs = lease->held->slabs;
  size_t end = lease->copy->backed_slabs;
  uint64_t sum = 0;
  while (end < slabs.size() && sum + slabs[end].bytes <= bytes)
    sum += slabs[end++].bytes;
  if (sum == 0) return 0;
  lease->copy.Edit({}).backing_slabs =
      static_cast<uint32_t>(end - lease->copy->backed_slabs);
  lease->copy.Edit({}).moved = absl::OkStatus();
  lease->copy.Edit({}).backing_started = now;
  CopyContents(lease, device::CopyDirection::kOut, lease->copy->backed_slabs,
               end, turn);
  if (lease->copy->copies > 0) return sum;
  lease->copy.Edit({}).backing_slabs = 0;
  (void)TakeError(lease);
  LeaveAlone(lease, now);
  return 0;
}

// The copy is true if no scope has come in since it began.
void HostDesk::OnBacked(Lease* lease, Turn& turn) {
  const uint32_t copied = std::exchange(lease->copy.Edit({}).backing_slabs, 0);
  const quota::Instant now = turn.now();
  if (state_.engine->Lease(lease->id)
          ->hard) {  // its gate was turned off meanwhile
    (void)TakeError(lease);
    return GiveUpRoom(lease);
  }
  const bool holds = lease->sharing->sealed ||
                     state_.SessionAt(lease->request.session)
                         .gate->UnusedSince(lease->copy->backed_epoch);
  const absl::Status error = TakeError(lease);
  // The slabs that were copied before stay.
  if (absl::IsCancelled(error) && holds) return;
  if (!error.ok() || !holds) {
    lease->copy.Edit({}).backed_slabs = 0;
    if (!error.ok() && !absl::IsCancelled(error)) LeaveAlone(lease, now);
    return;
  }
  lease->copy.Edit({}).backed_slabs += copied;
  if (lease->copy->backed_slabs < lease->held->slabs.size()) return;
  lease->copy.Edit({}).backed_slabs = 0;
  MarkTrue(*lease);
  PublishMove(state_, "backed", *lease, now - lease->copy->backing_started, "",
              turn);
}

}  // namespace gmb::broker
