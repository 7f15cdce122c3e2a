// A lease that comes back to the device: created, filled, mapped.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr uint32_t kMaxAttempts = 3;
// While nobody outside takes what is freed.
constexpr uint32_t kMostAttempts = 256;

}  // namespace

// Makes usable what an eviction that failed, or a restore, has left on the
// device; of a shared lease, what others have brought back. False: it could not
// begin.
bool Machine::MakeReady(Lease* lease, Session* session, Turn& turn) {
  if (lease->residence == Residence::kRestoring) return true;  // of the group
  if (!lease->shared || lease->torn) return Refill(lease, turn);
  state_.moving.insert(lease->id);
  StartMapping(lease, lease->MappingOf(session->id), turn);
  return true;
}

bool Machine::Refill(Lease* lease, Turn& turn) {
  lease->residence = Residence::kRestoring;
  lease->move_started = turn.now();
  lease->moved = absl::OkStatus();
  state_.moving.insert(lease->id);
  state_.reclaim.Touch(state_, *lease);
  if (lease->torn) {
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 turn);
  }
  const bool began = lease->moved.ok();
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
  return began;
}

// Of those who share it, the ones that want it; the others map it when they do.
void Machine::MapForUsers(Lease* lease, Turn& turn) {
  for (Mapping& mapping : lease->mappings) {
    const bool wanted =
        !lease->shared || WantsIn(state_, &state_.SessionAt(mapping.session));
    if (mapping.unmapped && wanted) StartMapping(lease, &mapping, turn);
  }
}

void Machine::StartRestore(Lease* lease, Turn& turn) {
  Pool* pool = &state_.PoolAt(lease->request.pool);
  lease->residence = Residence::kRestoring;
  lease->move_started = turn.now();
  lease->moved = absl::OkStatus();
  state_.moving.insert(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_started", *lease, {}, "", turn);
  TakePlan plan = pool->slabs.Take(lease->tenant, lease->bytes);
  lease->slabs = std::move(plan.taken);
  if (plan.create_bytes.empty()) return FillAndMap(lease, turn);
  lease->preparing = true;
  Give(pool,
       PrepareJob{lease->id,
                  {std::move(plan.destroy), std::move(plan.create_bytes)}},
       turn);
}

// Its slabs are there: clients map them while they are being filled.
void Machine::FillAndMap(Lease* lease, Turn& turn) {
  if (lease->request.contents == v1::PRESERVE) {
    if (state_.host_books.TrueCopy(lease->id) == nullptr)
      return LoseContents(lease, turn);
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 turn);
  }
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
}

// There is nothing to fill it with: it stays evicted, and who asks is told.
void Machine::LoseContents(Lease* lease, Turn& turn) {
  GiveBack(&state_.PoolAt(lease->request.pool), *lease, {}, turn);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  state_.moving.erase(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_failed", *lease, {}, "its contents are gone", turn);
  Tell(quota::Evicted{lease->id}, turn);
  turn.Queue(MoveFailed{
      lease->id,
      proto::MakeError(v1::CONTENTS_LOST,
                       absl::StrCat("a lease's contents are gone: release it "
                                    "and make them anew: lease=",
                                    lease->id.value))});
}

// Not all of its slabs could be created: it stays evicted.
void Machine::OnRestoreNotPrepared(Pool* pool, Lease* lease,
                                   const std::vector<uint64_t>& not_created,
                                   const absl::Status& status, Turn& turn) {
  for (const uint64_t bytes : not_created) pool->slabs.CreateFailed(bytes);
  GiveBack(pool, *lease, {}, turn);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  state_.moving.erase(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_failed", *lease, {}, status.message(), turn);
  Tell(quota::Evicted{lease->id}, turn);
  // Whoever holds on to a slab for a moment costs a moment; who goes past the
  // broker takes whatever is freed.
  const bool passing =
      absl::IsResourceExhausted(status) && pool->missing_bytes == 0;
  if (RestoreAttempts(state_, *lease) >=
      (passing ? kMostAttempts : kMaxAttempts)) {
    turn.Queue(MoveFailed{
        lease->id,
        proto::MakeError(
            absl::IsResourceExhausted(status) ? v1::POOL_EXHAUSTED
                                              : v1::DEVICE_ERROR,
            absl::StrCat("the device could not make the slabs again; contents "
                         "are kept, try again: ",
                         status.message()),
            {.retry_after = absl::Milliseconds(500)})});
  }
  turn.Queue(LeaseSettled{lease->id});
}

void Machine::OnMapped(Session* session, const v1::Mapped& mapped, Turn& turn) {
  Lease* lease = FindLease(*session, mapped.lease_id());
  if (lease == nullptr || lease->residence == Residence::kEvicting) return;
  Mapping* mapping = lease->MappingOf(session->id);
  if (!mapping->asked || mapping->move != mapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  mapping->unmapped = mapped.has_error();
  state_.reclaim.Touch(state_, *lease);
  absl::Status failed;
  if (mapped.has_error()) failed = proto::FromWireError(mapped.error());
  if (lease->shared) return OnSharedMapped(session, lease, failed, turn);
  lease->moved.Update(failed);
  TryEndRestore(lease, turn);
}

void Machine::TryEndRestore(Lease* lease, Turn& turn) {
  // Who shares it may leave at any time.
  if (lease->preparing) return;
  // A shared one is back once it is filled: who maps it does so on his own
  // account.
  const bool mapping = lease->asked();
  if (lease->copies > 0 || (mapping && !(lease->shared && lease->moved.ok())))
    return;
  const quota::Instant now = turn.now();
  if (!mapping && lease->ForgetOverdue()) Soften(lease, turn);
  state_.reclaim.Touch(state_, *lease);
  if (!lease->moved.ok()) return UndoRestore(lease, turn);
  if (!mapping) state_.moving.erase(lease->id);
  lease->residence = Residence::kResident;
  lease->torn = false;
  lease->resident_since = now;
  lease->restore_time = now - lease->move_started;
  state_.reclaim.Touch(state_, *lease);
  if (!lease->shared) {
    lease->backed_epoch =
        state_.SessionAt(lease->request.session).gate->epoch();
  }
  PublishMove("restored", *lease, lease->restore_time, "", turn);
  turn.Queue(LeaseSettled{lease->id});
}

// What was asked for fails; its contents are where they are authoritative.
void Machine::UndoRestore(Lease* lease, Turn& turn) {
  const absl::Status why = std::exchange(lease->moved, absl::OkStatus());
  PublishMove("restore_failed", *lease, {}, why.message(), turn);
  const bool in_host_pool = lease->request.contents != v1::PRESERVE ||
                            state_.host_books.TrueCopy(lease->id) != nullptr;
  turn.Queue(MoveFailed{lease->id, NotBroughtBack(why)});
  if (in_host_pool) {
    lease->torn = lease->request.contents == v1::PRESERVE;
    return StartEviction(
        lease,
        turn.now() + quota::Nanoseconds(state_.options.planner.unmap_grace),
        lease->may_terminate, turn);
  }
  state_.moving.erase(lease->id);
  lease->residence = Residence::kResident;
  state_.reclaim.Touch(state_, *lease);
}

}  // namespace gmb::broker
