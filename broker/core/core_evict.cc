// Leases that leave the device: copied out, unmapped, destroyed.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"
#include "broker/hostpool/slab_rooms.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// After a failed step a lease is left alone for so long.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);
constexpr uint32_t kMostRefusals = 2;
// For mapping what was restored; not a matter of others' bytes.
constexpr quota::Nanoseconds kMapGrace = std::chrono::seconds(30);

// Whom nobody can kill is as one whom nobody may.
bool MayKill(const Lease& lease, const Session& session) {
  return lease.may_terminate && session.peer.pidfd != nullptr;
}

}  // namespace

// The gates of all who use it are closed by now.
void Core::StartEviction(Lease* lease, quota::Instant answer_by,
                         bool may_terminate, Afterwards* after) {
  // What is only half restored must not go over its true copy.
  const bool copies = lease->request.contents == v1::PRESERVE && !lease->torn &&
                      !IsBacked(*lease);
  PublishMove("evict_started", *lease, {}, copies ? "" : "nothing to copy");
  lease->residence = Residence::kEvicting;
  lease->move_started = deps_.clock->Now();
  lease->moved = absl::OkStatus();
  lease->may_terminate = may_terminate;
  moving_.insert(lease->id);
  if (copies) {
    host_books_.MarkUntrue(lease->id);
    CopyContents(lease, device::CopyDirection::kOut,
                 {BackedSlabs(*lease), lease->slabs.size()}, after);
  }
  lease->backed_slabs = 0;
  if (!lease->shared) {
    lease->backed_epoch = sessions_.at(lease->request.session)->gate->epoch();
  }
  for (Mapping& mapping : lease->mappings) {
    mapping.overdue = false;
    if (!mapping.unmapped) AskToMove(lease, &mapping, answer_by, after);
  }
  TryEndEviction(lease, after);
}

void Core::CopyContents(Lease* lease, device::CopyDirection direction,
                        SlabRange range, Afterwards* after) {
  const auto* const held = host_books_.TrueCopy(lease->id);
  const std::vector<device::HostExtent> place =
      held != nullptr ? *held : host_books_.Place(lease->id);
  Pool* pool = pools_.at(lease->request.pool).get();
  std::vector<uint64_t> slab_bytes;
  slab_bytes.reserve(lease->slabs.size());
  for (const Slab& slab : lease->slabs) slab_bytes.push_back(slab.bytes);
  std::vector<std::vector<device::HostExtent>> rooms =
      SlabRooms(place, slab_bytes);
  if (rooms.size() != slab_bytes.size() || pool->copier == nullptr) {
    lease->moved = absl::InternalError("the host pool has no place for it");
    return;
  }
  lease->copy_group = ++last_copy_group_;
  lease->copies = static_cast<uint32_t>(range.end - range.first);
  for (size_t i = range.first; i < range.end; ++i) {
    device::CopyJob job;
    job.direction = direction;
    job.group = lease->copy_group;
    job.slab_bytes = slab_bytes[i];
    job.room = std::move(rooms[i]);
    job.done = [this, id = lease->id](const absl::Status& status) {
      OnCopied(id, status);
    };
    job.slab = deps_.keeper->Get(lease->slabs[i].id);
    after->copies.emplace_back(pool->copier.get(), std::move(job));
  }
}

void Core::OnCopied(quota::LeaseId id, const absl::Status& status) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    auto it = leases_.find(id);
    if (it == leases_.end() || pools_.empty()) return;  // stopping
    Lease* lease = it->second.get();
    --lease->copies;
    if (!status.ok() && lease->moved.ok()) {
      lease->moved = status;
      after.cancel.emplace_back(pools_.at(lease->request.pool)->copier.get(),
                                lease->copy_group);
    }
    if (lease->copies > 0) {
      // The others follow.
    } else if (lease->doomed) {
      EndLease(id, /*reuse=*/false, &after);
    } else if (lease->residence == Residence::kResident) {
      OnBacked(lease);
    } else if (lease->residence == Residence::kEvicting) {
      if (lease->moved.ok()) host_books_.MarkTrue(id);
      TryEndEviction(lease, &after);
    } else {
      TryEndRestore(lease, &after);
    }
    Maintain(&after);
  }
  after.Run(this);
}

void Core::AskToMove(Lease* lease, Mapping* mapping, quota::Instant answer_by,
                     Afterwards* after) {
  Session* session = sessions_.at(mapping->session);
  session->outbox->ExpectMoves(session->leases.size());
  mapping->move = ++session->last_move;
  mapping->asked = true;
  mapping->answer_by = answer_by;
  if (lease->residence != Residence::kEvicting)
    SendSlabs(session, *lease, /*request_id=*/0, mapping->move);
  Say(session, MoveMessage(*lease, *mapping), after);
}

// The client's answer to an Evict. One to anything else is a lie, or late.
void Core::OnUnmapped(Session* session, const v1::Unmapped& unmapped,
                      Afterwards* after) {
  Lease* lease = FindLease(*session, unmapped.lease_id());
  if (lease == nullptr || lease->residence != Residence::kEvicting) return;
  Mapping* mapping = lease->MappingOf(session->id);
  if (!mapping->asked || mapping->move != unmapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  if (unmapped.has_error()) {
    lease->moved.Update(proto::FromWireError(unmapped.error()));
    ++mapping->refusals;
    after->cancel.emplace_back(pools_.at(lease->request.pool)->copier.get(),
                               lease->copy_group);
  } else {
    mapping->unmapped = true;
    mapping->refusals = 0;
  }
  TryEndEviction(lease, after);
}

void Core::TryEndEviction(Lease* lease, Afterwards* after) {
  if (lease->copies > 0 || lease->asked()) return;
  moving_.erase(lease->id);
  if (!lease->moved.ok()) {
    // Its contents are where they were; whether it is mapped, `unmapped` says.
    lease->residence = Residence::kResident;
    lease->back_off_until = deps_.clock->Now() + kBackOff;
    PublishMove("evict_failed", *lease, {}, lease->moved.message());
    if (lease->ForgetOverdue()) Soften(lease, after);
    for (const Mapping& mapping : lease->mappings) {
      if (mapping.refusals >= kMostRefusals)
        OnUnresponsive(sessions_.at(mapping.session), lease, after);
    }
    return AdvanceUsers(lease, after);
  }
  Pool* pool = pools_.at(lease->request.pool).get();
  lease->residence = Residence::kEvicted;
  (void)lease->ForgetOverdue();
  lease->torn = false;
  PublishMove("evicted", *lease, deps_.clock->Now() - lease->move_started, "");
  // Before the engine may grant these bytes to another: see EndLease.
  GiveBack(pool, *lease, {}, after);
  lease->slabs.clear();
  Tell(quota::Evicted{lease->id}, after);
  AdvanceUsers(lease, after);
}

// Who says again and again that he can not unmap is as one who says nothing.
void Core::OnUnresponsive(Session* session, Lease* lease, Afterwards* after) {
  if (MayKill(*lease, *session)) {
    Terminate(session, after);
  } else {
    Tell(quota::HardChanged{lease->id, true}, after);
  }
}

// Whoever does not answer keeps what he has, and it counts as hard: nobody can
// take it but by killing him.
void Core::CheckOverdue(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  const std::vector<quota::LeaseId> moving(moving_.begin(), moving_.end());
  for (const quota::LeaseId id : moving) {
    Lease* lease = leases_.at(id).get();
    for (Mapping& mapping : lease->mappings) {
      if (!mapping.asked || mapping.overdue || now < mapping.answer_by)
        continue;
      mapping.overdue = true;
      const bool killed = MayKill(*lease, *sessions_.at(mapping.session));
      PublishMove("client_overdue", *lease, now - lease->move_started,
                  killed ? "it does not answer and may be killed for its memory"
                         : "it does not answer; its memory stays with it");
      if (!killed) Tell(quota::HardChanged{id, true}, after);
    }
  }
}

void Core::StartMapping(Lease* lease, Mapping* mapping, Afterwards* after) {
  AskToMove(lease, mapping, deps_.clock->Now() + kMapGrace, after);
}

void Core::PublishMove(absl::string_view kind, const Lease& lease,
                       quota::Nanoseconds took,
                       absl::string_view message) const {
  v1::Event event = NewEvent(kind, lease.tenant);
  event.set_session_id(lease.request.session);
  event.set_lease_id(lease.id.value);
  event.set_device(pools_.at(lease.request.pool)->uuid());
  event.set_bytes(lease.bytes);
  if (took.count() > 0) *event.mutable_took() = ToProto(took);
  event.set_message(std::string(message));
  deps_.events->Publish(std::move(event));
}

}  // namespace gmb::broker
