// Leases that come back to the device: slabs are made, filled and mapped.
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/attempts.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// For mapping what was restored; not a matter of others' bytes.
constexpr quota::Nanoseconds kMapGrace = std::chrono::seconds(30);

// A lease that came back in part, before the rest was there, has failed: it does
// not wait with the rest, but for its next attempt, with all.
void WithdrawRestore(const State& state, const Lease& lease, QuotaDesk& quota,
                     Turn& turn) {
  if (lease.sharing->shared) return;  // it never comes back in part
  for (const Session* user : UsersOf(state, lease)) {
    const auto& restoring = user->waking->restoring;
    if (restoring.has_value() && state.engine->IsWaiting(*restoring))
      quota.Tell(quota::Cancel{*restoring}, turn);
  }
}

}  // namespace

bool LeaseMover::MakeReady(Lease* lease, Session* session, Turn& turn) {
  // Of the same group.
  if (lease->move->residence == Residence::kRestoring) return true;
  if (!lease->sharing->shared || lease->move->torn) return Refill(lease, turn);
  state_.moving.Edit({}).insert({lease->tenant, lease->id});
  AskToMove(lease, lease->move.Edit({}).MappingOf(session->id),
            turn.now() + kMapGrace, turn);
  return true;
}

bool LeaseMover::Refill(Lease* lease, Turn& turn) {
  LeaseMove& move = lease->move.Edit({});
  move.residence = Residence::kRestoring;
  move.move_started = turn.now();
  host_.BeginMove(lease);
  state_.moving.Edit({}).insert({lease->tenant, lease->id});
  index_.Touch(lease);
  if (move.torn) host_.CopyIn(lease, turn);
  const bool began = lease->copy->moved.ok();
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
  return began;
}

// Of those who share it, the ones that want it; the others map it when they do.
void LeaseMover::MapForUsers(Lease* lease, Turn& turn) {
  for (Mapping& mapping : lease->move.Edit({}).mappings) {
    const bool wanted = !lease->sharing->shared ||
                        WantsIn(state_, &state_.SessionAt(mapping.session));
    if (mapping.unmapped && wanted)
      AskToMove(lease, &mapping, turn.now() + kMapGrace, turn);
  }
}

void LeaseMover::StartRestore(Lease* lease, Turn& turn) {
  LeaseMove& move = lease->move.Edit({});
  move.residence = Residence::kRestoring;
  move.move_started = turn.now();
  host_.BeginMove(lease);
  state_.moving.Edit({}).insert({lease->tenant, lease->id});
  index_.Touch(lease);
  PublishMove(state_, "restore_started", *lease, {}, "", turn);
  if (pools_.Take(lease, turn)) FillAndMap(lease, turn);
}

void LeaseMover::OnPrepared(Lease* lease, const SlabsMade& made, Turn& turn) {
  if (!made.not_created.empty()) return OnRestoreNotPrepared(lease, made, turn);
  FillAndMap(lease, turn);
}

// Its slabs are there: clients map them while they are being filled. If there
// is nothing to fill them with it stays evicted, and the one that asks is told.
void LeaseMover::FillAndMap(Lease* lease, Turn& turn) {
  if (lease->request.contents == v1::PRESERVE) {
    if (state_.host_books->TrueCopy(lease->id) == nullptr) {
      pools_.GiveBack(lease, {}, turn);
      StayEvicted(lease, "its contents are gone", turn);
      return turn.Queue(MoveFailed{
          lease->id,
          proto::MakeError(
              v1::CONTENTS_LOST,
              absl::StrCat("a lease's contents are gone: release it and make "
                           "them anew: lease=",
                           lease->id.value))});
    }
    host_.CopyIn(lease, turn);
    if (lease->copy->copies == 0) pools_.Filled(lease, turn);  // it failed
  }
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
}

void LeaseMover::StayEvicted(Lease* lease, absl::string_view why, Turn& turn) {
  lease->move.Edit({}).residence = Residence::kEvicted;
  state_.moving.Edit({}).erase({lease->tenant, lease->id});
  index_.Touch(lease);
  PublishMove(state_, "restore_failed", *lease, {}, why, turn);
  WithdrawRestore(state_, *lease, quota_, turn);
  quota_.Tell(quota::Evicted{lease->id}, turn);
}

// Not all of its slabs could be created: it stays evicted.
void LeaseMover::OnRestoreNotPrepared(Lease* lease, const SlabsMade& made,
                                      Turn& turn) {
  const absl::Status& status = made.status;
  pools_.GiveUp(lease, made.not_created, turn);
  StayEvicted(lease, status.message(), turn);
  // A client that holds on to a slab for a moment costs a moment; a process
  // that goes past the broker takes whatever is freed.
  const PoolDevice& device = *state_.PoolAt(lease->request.pool).device;
  const bool no_memory = absl::IsResourceExhausted(status);
  if (no_memory && device.reading.destroyed_is_kept)
    return turn.Queue(RestorePutOff{lease->id});
  const bool passing = no_memory && device.missing_bytes == 0;
  if (!MayTryAgain(RestoreAttempts(state_, *lease), passing)) {
    turn.Queue(MoveFailed{
        lease->id,
        proto::MakeError(
            no_memory ? v1::POOL_EXHAUSTED : v1::DEVICE_ERROR,
            absl::StrCat("the device could not make the slabs again; contents "
                         "are kept, try again: ",
                         status.message()),
            {.retry_after = absl::Milliseconds(500)})});
  }
  turn.Queue(LeaseSettled{lease->id});
}

void LeaseMover::OnMapped(Session* session, const v1::Mapped& mapped,
                          Turn& turn) {
  Lease* lease = FindLease(state_, *session, mapped.lease_id());
  if (lease == nullptr || lease->move->residence == Residence::kEvicting)
    return;
  Mapping* mapping = lease->move.Edit({}).MappingOf(session->id);
  if (!mapping->asked || mapping->move != mapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  mapping->unmapped = mapped.has_error();
  index_.Touch(lease);
  absl::Status failed;
  if (mapped.has_error()) failed = FromClient(mapped.error());
  if (lease->sharing->shared)
    return OnSharedMapped(session, lease, failed, turn);
  host_.Spoil(lease, failed);
  TryEndRestore(lease, turn);
}

// A Map of a lease that others may be using meanwhile.
void LeaseMover::OnSharedMapped(Session* session, Lease* lease,
                                const absl::Status& failed, Turn& turn) {
  if (!failed.ok()) {
    turn.Queue(MoveFailed{lease->id, NotBroughtBack(failed), session->id});
  }
  if (!lease->asked() && lease->move.Edit({}).ForgetOverdue())
    host_.Soften(*lease, turn);
  index_.Touch(lease);
  if (lease->move->residence == Residence::kRestoring) {
    TryEndRestore(lease, turn);
  } else if (!lease->asked()) {
    state_.moving.Edit({}).erase({lease->tenant, lease->id});
  }
  turn.Queue(LeaseSettled{lease->id});
}

void LeaseMover::TryEndRestore(Lease* lease, Turn& turn) {
  // A session that shares it may leave at any time.
  if (lease->held->preparing) return;
  // A shared one is back once it is filled: a session that maps it does so on
  // its own account.
  const bool mapping = lease->asked();
  if (lease->copy->copies > 0 ||
      (mapping && !(lease->sharing->shared && lease->copy->moved.ok())))
    return;
  const quota::Instant now = turn.now();
  if (!mapping && lease->move.Edit({}).ForgetOverdue())
    host_.Soften(*lease, turn);
  index_.Touch(lease);
  if (!lease->copy->moved.ok()) return UndoRestore(lease, turn);
  if (!mapping) state_.moving.Edit({}).erase({lease->tenant, lease->id});
  LeaseMove& move = lease->move.Edit({});
  move.residence = Residence::kResident;
  const bool was_torn = std::exchange(move.torn, false);
  move.resident_since = now;
  move.restore_time = now - move.move_started;
  index_.Touch(lease);
  host_.MarkFilled(lease);
  // It became hard when its contents were in that room alone.
  if (was_torn && state_.engine->Lease(lease->id)->hard)
    host_.GiveUpRoom(lease);
  PublishMove(state_, "restored", *lease, move.restore_time, "", turn);
  turn.Queue(LeaseSettled{lease->id});
}

// The restore has failed; the contents are where they are authoritative.
void LeaseMover::UndoRestore(Lease* lease, Turn& turn) {
  const absl::Status why = host_.TakeError(lease);
  WithdrawRestore(state_, *lease, quota_, turn);
  PublishMove(state_, "restore_failed", *lease, {}, why.message(), turn);
  const bool in_host_pool = lease->request.contents != v1::PRESERVE ||
                            state_.host_books->TrueCopy(lease->id) != nullptr;
  turn.Queue(MoveFailed{lease->id, NotBroughtBack(why)});
  if (in_host_pool)
    lease->move.Edit({}).torn = lease->request.contents == v1::PRESERVE;
  // One that is refilled where it lies may be in use (takeover.cc).
  const bool in_use = lease->sharing->shared && !AllClosed(state_, *lease);
  if (in_host_pool && !in_use) {
    return StartEviction(
        lease,
        turn.now() + quota::Nanoseconds(state_.options.planner.unmap_grace),
        lease->move->may_terminate, turn);
  }
  state_.moving.Edit({}).erase({lease->tenant, lease->id});
  lease->move.Edit({}).residence = Residence::kResident;
  index_.Touch(lease);
}

}  // namespace gmb::broker
