// Leases that leave the device: copied out, unmapped, destroyed.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/hostpool/slab_rooms.h"
#include "broker/machine/backed.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// After a failed step a lease is left alone for so long.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);
constexpr uint32_t kMostRefusals = 2;
// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostAtOnce = 64;
// For mapping what was restored; not a matter of others' bytes.
constexpr quota::Nanoseconds kMapGrace = std::chrono::seconds(30);

// Whom nobody can kill is as one whom nobody may.
bool MayKill(const Lease& lease, const Session& session) {
  return lease.may_terminate && session.peer.pidfd != nullptr;
}

}  // namespace

// The gates of all who use it are closed by now.
void Machine::StartEviction(Lease* lease, quota::Instant answer_by,
                            bool may_terminate, Turn& turn) {
  // What is only half restored must not go over its true copy.
  const bool copies = lease->request.contents == v1::PRESERVE && !lease->torn &&
                      !IsBacked(state_, *lease);
  PublishMove("evict_started", *lease, {}, copies ? "" : "nothing to copy",
              turn);
  lease->residence = Residence::kEvicting;
  lease->move_started = turn.now();
  lease->moved = absl::OkStatus();
  lease->may_terminate = may_terminate;
  state_.moving.insert(lease->id);
  state_.reclaim.Touch(state_, *lease);
  if (copies) {
    state_.host_books.MarkUntrue(lease->id);
    CopyContents(lease, device::CopyDirection::kOut,
                 {BackedSlabs(state_, *lease), lease->slabs.size()}, turn);
  }
  lease->backed_slabs = 0;
  if (!lease->shared) {
    lease->backed_epoch =
        state_.SessionAt(lease->request.session).gate->epoch();
  }
  for (Mapping& mapping : lease->mappings) {
    mapping.overdue = false;
    if (!mapping.unmapped) AskToMove(lease, &mapping, answer_by, turn);
  }
  state_.reclaim.Touch(state_, *lease);  // whoever was overdue is not any more
  TryEndEviction(lease, turn);
}

void Machine::CopyContents(Lease* lease, device::CopyDirection direction,
                           SlabRange range, Turn& turn) {
  const auto* const held = state_.host_books.TrueCopy(lease->id);
  const std::vector<device::HostExtent> place =
      held != nullptr ? *held : state_.host_books.Place(lease->id);
  Pool* pool = &state_.PoolAt(lease->request.pool);
  std::vector<uint64_t> slab_bytes;
  slab_bytes.reserve(lease->slabs.size());
  for (const Slab& slab : lease->slabs) slab_bytes.push_back(slab.bytes);
  std::vector<std::vector<device::HostExtent>> rooms =
      SlabRooms(place, slab_bytes);
  if (rooms.size() != slab_bytes.size() || !pool->has_copier) {
    lease->moved = absl::InternalError("the host pool has no place for it");
    return;
  }
  lease->copy_group = ++state_.last_copy_group;
  lease->copies = static_cast<uint32_t>(range.end - range.first);
  for (size_t i = range.first; i < range.end; ++i) {
    turn.Add(CopySlab{.pool = pool->id,
                      .lease = lease->id,
                      .slab = lease->slabs[i].id,
                      .direction = direction,
                      .group = lease->copy_group,
                      .slab_bytes = slab_bytes[i],
                      .room = std::move(rooms[i])});
  }
}

void Machine::OnCopied(quota::LeaseId id, const absl::Status& status,
                       Turn& turn) {
  const auto found = state_.leases.find(id);
  if (found == state_.leases.end()) return;
  Lease* lease = found->second.get();
  --lease->copies;
  if (!status.ok() && lease->moved.ok()) {
    lease->moved = status;
    turn.Add(CancelCopies{lease->request.pool, lease->copy_group});
  }
  if (lease->copies > 0) return;  // the others follow
  state_.reclaim.Touch(state_, *lease);
  if (lease->doomed) {
    EndLease(id, /*reuse=*/false, turn);
  } else if (lease->residence == Residence::kResident) {
    OnBacked(lease, turn);
  } else if (lease->residence == Residence::kEvicting) {
    if (lease->moved.ok()) state_.host_books.MarkTrue(id);
    TryEndEviction(lease, turn);
  } else {
    TryEndRestore(lease, turn);
  }
}

void Machine::AskToMove(Lease* lease, Mapping* mapping,
                        quota::Instant answer_by, Turn& turn) {
  Session* session = &state_.SessionAt(mapping->session);
  turn.Add(ExpectMoves{session->id, session->leases.size()});
  mapping->move = ++session->last_move;
  mapping->asked = true;
  mapping->answer_by = answer_by;
  state_.reclaim.Touch(state_, *lease);
  if (lease->residence != Residence::kEvicting)
    SendSlabs(session, *lease, /*request_id=*/0, mapping->move, turn);
  Say(session, MoveMessage(*lease, *mapping), turn);
}

// The client's answer to an Evict. One to anything else is a lie, or late.
void Machine::OnUnmapped(Session* session, const v1::Unmapped& unmapped,
                         Turn& turn) {
  Lease* lease = FindLease(*session, unmapped.lease_id());
  if (lease == nullptr || lease->residence != Residence::kEvicting) return;
  Mapping* mapping = lease->MappingOf(session->id);
  if (!mapping->asked || mapping->move != unmapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  if (unmapped.has_error()) {
    lease->moved.Update(proto::FromWireError(unmapped.error()));
    ++mapping->refusals;
    turn.Add(CancelCopies{lease->request.pool, lease->copy_group});
  } else {
    mapping->unmapped = true;
    mapping->refusals = 0;
  }
  state_.reclaim.Touch(state_, *lease);
  TryEndEviction(lease, turn);
}

void Machine::TryEndEviction(Lease* lease, Turn& turn) {
  if (lease->copies > 0 || lease->asked()) return;
  state_.moving.erase(lease->id);
  if (!lease->moved.ok()) {
    // Its contents are where they were; whether it is mapped, `unmapped` says.
    lease->residence = Residence::kResident;
    lease->back_off_until = turn.now() + kBackOff;
    PublishMove("evict_failed", *lease, {}, lease->moved.message(), turn);
    if (lease->ForgetOverdue()) Soften(lease, turn);
    state_.reclaim.Touch(state_, *lease);
    for (const Mapping& mapping : lease->mappings) {
      if (mapping.refusals >= kMostRefusals)
        OnUnresponsive(&state_.SessionAt(mapping.session), lease, turn);
    }
    return turn.Queue(LeaseSettled{lease->id});
  }
  Pool* pool = &state_.PoolAt(lease->request.pool);
  lease->residence = Residence::kEvicted;
  (void)lease->ForgetOverdue();
  lease->torn = false;
  state_.reclaim.Touch(state_, *lease);
  PublishMove("evicted", *lease, turn.now() - lease->move_started, "", turn);
  // Before the engine may grant these bytes to another: see EndLease.
  GiveBack(pool, *lease, {}, turn);
  lease->slabs.clear();
  Tell(quota::Evicted{lease->id}, turn);
  turn.Queue(LeaseSettled{lease->id});
}

// Who says again and again that he can not unmap is as one who says nothing.
void Machine::OnUnresponsive(Session* session, Lease* lease, Turn& turn) {
  if (MayKill(*lease, *session)) {
    Terminate(session, turn);
  } else {
    Tell(quota::HardChanged{lease->id, true}, turn);
  }
}

// Answers that have come, or that nobody will give any more.
void Machine::ForgetOwed(Turn& turn) {
  for (const OwedAnswers::Key& key : state_.owed.Keys()) {
    const auto lease = state_.leases.find(key.lease);
    const Mapping* mapping = lease == state_.leases.end()
                                 ? nullptr
                                 : lease->second->MappingOf(key.session);
    if (mapping != nullptr && mapping->asked && mapping->overdue) continue;
    const quota::TenantId tenant = state_.owed.Remove(key);
    // Others of its process and of its tenant may be asked again.
    for (const auto& [pool, unused] : state_.pools)
      state_.reclaim.MarkChanged(pool, tenant);
    if (state_.owed.OfTenant(tenant) == 0) SoftenAll(tenant, turn);
  }
}

// The tenant owes no answer any more: what was hard for that is soft again.
void Machine::SoftenAll(quota::TenantId tenant_id, Turn& turn) {
  const Tenant* tenant = state_.tenants.Find(tenant_id);
  if (tenant == nullptr) return;
  std::set<quota::LeaseId> hard;
  const auto add = [&](quota::LeaseId id) {
    if (state_.engine.Lease(id)->hard) hard.insert(id);
  };
  for (const uint64_t session : tenant->sessions) {
    for (const quota::LeaseId id : state_.SessionAt(session).leases) add(id);
  }
  for (const quota::LeaseId id : SharedOf(state_, tenant_id)) add(id);
  for (const quota::LeaseId id : hard) {
    const auto lease = state_.leases.find(id);  // others may be served by that
    if (lease == state_.leases.end()) continue;
    const std::vector<Mapping>& mappings = lease->second->mappings;
    const bool refuses = std::any_of(
        mappings.begin(), mappings.end(),
        [](const Mapping& m) { return m.refusals >= kMostRefusals; });
    if (!refuses) Soften(lease->second.get(), turn);
  }
}

// Whoever does not answer keeps what he has, and it counts as hard: nobody can
// take it but by killing him.
void Machine::CheckOverdue(Turn& turn) {
  ForgetOwed(turn);
  const quota::Instant now = turn.now();
  for (int i = 0; i < kMostAtOnce && state_.reclaim.answers_due() <= now; ++i) {
    Lease* lease = &state_.LeaseAt(state_.reclaim.FirstAnswer());
    for (Mapping& mapping : lease->mappings) {
      if (!mapping.asked || mapping.overdue || now < mapping.answer_by)
        continue;
      mapping.overdue = true;
      state_.owed.Add(lease->id, state_.SessionAt(mapping.session));
      const bool killed = MayKill(*lease, state_.SessionAt(mapping.session));
      PublishMove("client_overdue", *lease, now - lease->move_started,
                  killed ? "it does not answer and may be killed for its memory"
                         : "it does not answer; its memory stays with it",
                  turn);
      if (!killed) Tell(quota::HardChanged{lease->id, true}, turn);
    }
    state_.reclaim.Touch(state_, *lease);
  }
}

void Machine::StartMapping(Lease* lease, Mapping* mapping, Turn& turn) {
  AskToMove(lease, mapping, turn.now() + kMapGrace, turn);
}

void Machine::PublishMove(absl::string_view kind, const Lease& lease,
                          quota::Nanoseconds took, absl::string_view message,
                          Turn& turn) const {
  v1::Event event = NewEvent(kind, lease.tenant);
  event.set_session_id(lease.request.session);
  event.set_lease_id(lease.id.value);
  event.set_device(state_.PoolAt(lease.request.pool).uuid());
  event.set_bytes(lease.bytes);
  if (took.count() > 0) *event.mutable_took() = ToProto(took);
  // It may be a client's words, which end up on an operator's terminal.
  std::string printable(message);
  std::replace_if(printable.begin(), printable.end(), absl::ascii_iscntrl, ' ');
  event.set_message(std::move(printable));
  turn.Publish(std::move(event));
}

}  // namespace gmb::broker
