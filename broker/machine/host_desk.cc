// Room in the host pool, and the copies of leases that move.
#include "broker/machine/host_desk.h"

#include <chrono>
#include <utility>
#include <vector>

#include "broker/hostpool/slab_rooms.h"
#include "broker/machine/backed.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {

bool CanBeTaken(const State& state, const Session& session, const Pool& pool,
                v1::Contents contents) {
  return GroupIsOn(state, session) && pool.CanMove(contents);
}

bool HasSoftCredit(const State& state, quota::TenantId tenant) {
  return state.owed->OfTenant(tenant) == 0;
}

bool NeedsCopy(const State& state, const Lease& lease) {
  // A lease that is only half restored must not go over its true copy.
  return lease.contents() == v1::PRESERVE && !lease.move->torn &&
         !IsBacked(state, lease);
}

void HostDesk::SetLimit(quota::TenantId tenant, uint64_t bytes) {
  state_.host_books.Edit({}).SetLimit(tenant, bytes);
}

void HostDesk::ForgetTenant(quota::TenantId tenant) {
  state_.host_books.Edit({}).ForgetTenant(tenant);
}

bool HostDesk::ReserveRoom(const Lease& lease) {
  return ReserveRoomFor(lease.tenant, lease.id, lease.request, lease.bytes);
}

bool HostDesk::ReserveRoomFor(quota::TenantId tenant, quota::LeaseId lease,
                              const PendingAcquire& request, uint64_t bytes) {
  Recorder(state_).Touch(lease);
  return request.contents != v1::PRESERVE ||
         state_.host_books.Edit({}).Reserve(tenant, lease, bytes).outcome ==
             HostBooks::Outcome::kReserved;
}

// A copy that was made ahead of need may be older than the contents by now; what
// is sealed is never written.
bool HostDesk::Adopt(quota::TenantId tenant, const LeaseRecord& record) {
  if (!record.has_room) return true;
  const bool is_true =
      record.room_is_true && (record.sealed || record.torn ||
                              record.place == LeaseRecord::Place::kHost ||
                              record.place == LeaseRecord::Place::kReturning);
  return state_.host_books.Edit({}).Adopt(
      tenant, quota::LeaseId{record.id}, record.bytes,
      is_true ? record.room : std::vector<device::HostExtent>());
}

void HostDesk::Soften(const Lease& lease, Turn& turn) {
  const Pool& pool = state_.PoolAt(lease.request.pool);
  if (!pool.CanMove(lease.contents()) || lease.overdue() ||
      !HasSoftCredit(state_, lease.tenant)) {
    return;
  }
  for (const Mapping& mapping : lease.move->mappings) {
    const Session& session = state_.SessionAt(mapping.session);
    if (!CanBeTaken(state_, session, pool, lease.contents())) return;
  }
  if (ReserveRoom(lease))
    quota_.Tell(quota::HardChanged{lease.id, false}, turn);
}

void HostDesk::GiveUpRoom(Lease* lease) {
  // A torn lease has its contents there alone.
  if (lease->copy->copies > 0 || lease->move->torn ||
      lease->move->residence != Residence::kResident) {
    return;
  }
  Release(lease->id);
  lease->copy.Edit({}).backed_slabs = 0;
}

// Others that had no room may be taken now.
void HostDesk::Release(quota::LeaseId lease) {
  if (!state_.host_books->HasRoom(lease)) return;
  index_.MarkChangedEverywhere();
  Recorder(state_).Touch(lease);
  state_.host_books.Edit({}).Release(lease);
}

void HostDesk::BeginMove(Lease* lease) {
  lease->copy.Edit({}).moved = absl::OkStatus();
}

void HostDesk::CopyOut(Lease* lease, Turn& turn) {
  if (NeedsCopy(state_, *lease)) {
    state_.host_books.Edit({}).MarkUntrue(lease->id);
    Recorder(state_).Touch(lease->id);
    CopyContents(lease, device::CopyDirection::kOut,
                 BackedSlabs(state_, *lease), lease->held->slabs.size(), turn);
  }
  lease->copy.Edit({}).backed_slabs = 0;
  MarkFilled(lease);
}

void HostDesk::CopyIn(Lease* lease, Turn& turn) {
  CopyContents(lease, device::CopyDirection::kIn, 0, lease->held->slabs.size(),
               turn);
}

void HostDesk::CopyContents(Lease* lease, device::CopyDirection direction,
                            size_t first, size_t end, Turn& turn) {
  const auto* const held = state_.host_books->TrueCopy(lease->id);
  const std::vector<device::HostExtent> place =
      held != nullptr ? *held : state_.host_books.Edit({}).Place(lease->id);
  Pool& pool = state_.PoolAt(lease->request.pool);
  const std::vector<Slab>& slabs = lease->held->slabs;
  std::vector<uint64_t> slab_bytes;
  slab_bytes.reserve(slabs.size());
  for (const Slab& slab : slabs) slab_bytes.push_back(slab.bytes);
  std::vector<std::vector<device::HostExtent>> rooms =
      SlabRooms(place, slab_bytes);
  LeaseCopy& copy = lease->copy.Edit({});
  if (rooms.size() != slab_bytes.size() || !pool.has_copier) {
    copy.moved = absl::InternalError("the host pool has no place for it");
    return;
  }
  Recorder(state_).Touch(lease->id);
  copy.copy_group = ++state_.last_copy_group.Edit({});
  copy.copies = static_cast<uint32_t>(end - first);
  copy.copying_in = direction == device::CopyDirection::kIn;
  if (copy.copying_in && pool.copies_in.Edit({}).leases++ == 0)
    pool.copies_in.Edit({}).since = turn.now();
  for (size_t i = first; i < end; ++i) {
    turn.Add(CopySlab{.pool = pool.id,
                      .lease = lease->id,
                      .slab = slabs[i].id,
                      .direction = direction,
                      .group = copy.copy_group,
                      .slab_bytes = slab_bytes[i],
                      .room = std::move(rooms[i])});
  }
}

bool HostDesk::OnCopied(Lease* lease, const absl::Status& status, Turn& turn) {
  LeaseCopy& copy = lease->copy.Edit({});
  --copy.copies;
  if (!status.ok() && copy.moved.ok()) Fail(lease, status, turn);
  if (copy.copies > 0) return false;  // the others follow
  if (std::exchange(copy.copying_in, false))
    --state_.PoolAt(lease->request.pool).copies_in.Edit({}).leases;
  return true;
}

void HostDesk::Fail(Lease* lease, const absl::Status& why, Turn& turn) {
  Spoil(lease, why);
  CancelCopies(*lease, turn);
}

void HostDesk::Spoil(Lease* lease, const absl::Status& why) {
  lease->copy.Edit({}).moved.Update(why);
}

void HostDesk::CancelCopies(const Lease& lease, Turn& turn) {
  turn.Add(broker::CancelCopies{lease.request.pool, lease.copy->copy_group});
}

absl::Status HostDesk::TakeError(Lease* lease) {
  return std::exchange(lease->copy.Edit({}).moved, absl::OkStatus());
}

void HostDesk::MarkTrue(const Lease& lease) {
  state_.host_books.Edit({}).MarkTrue(lease.id);
  Recorder(state_).Touch(lease.id);
}

void HostDesk::MarkFilled(Lease* lease) {
  if (lease->sharing->shared) return;
  lease->copy.Edit({}).backed_epoch =
      state_.SessionAt(lease->request.session).gate->epoch();
}

void HostDesk::LeaveAlone(Lease* lease, quota::Instant now) {
  lease->copy.Edit({}).back_off_until = now + std::chrono::seconds(10);
}

void HostDesk::BeforeSeal(const Session& session, Lease* lease) {
  if (lease->sharing->sealed || lease->move->torn ||
      lease->move->residence != Residence::kResident ||
      IsBacked(state_, *lease)) {
    return;
  }
  LeaseCopy& copy = lease->copy.Edit({});
  if (BackedSlabs(state_, *lease) == 0) copy.backed_slabs = 0;
  if (copy.copies > 0 && !session.gate->UnusedSince(copy.backed_epoch))
    copy.moved.Update(absl::CancelledError("it was written meanwhile"));
  state_.host_books.Edit({}).MarkUntrue(lease->id);
  Recorder(state_).Touch(lease->id);
}

}  // namespace gmb::broker
