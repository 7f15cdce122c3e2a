// Leases: made of slabs once the engine has granted them, announced, ended.
#include "broker/machine/lease_desk.h"

#include <memory>
#include <string>
#include <utility>

#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Why nobody is to get it any more, whatever became of its slabs.
absl::Status WhyGivenUp(const State& state, const Lease& lease) {
  if (lease.life->cancelled) {
    return proto::MakeError(v1::CANCELLED_BY_CLIENT,
                            "the request was withdrawn");
  }
  return CheckStays(state, lease.tenant);
}

}  // namespace

void LeaseDesk::Make(const quota::Granted& granted,
                     const PendingAcquire& request, Turn& turn) {
  LeaseMove move;
  move.resident_since = turn.now();
  Lease* lease =
      state_.leases.Edit({})
          .emplace(
              granted.lease,
              Placed<Lease>(std::make_unique<Lease>(Lease{
                  .id = granted.lease,
                  .request = request,
                  .tenant = granted.tenant,
                  .bytes = granted.bytes,
                  .held = {},
                  .life = {},
                  .copy = {},
                  .move = Owned<LeaseMove, LeaseMover>(std::in_place, move),
                  .sharing = {},
                  .awaits_pause = {},
                  .asked_back = {},
                  .put_off = {},
                  .reclaim = {}})))
          .first->second.get();
  lease->life.Edit({}).since = turn.wall();
  mover_.AddUser(lease,
                 {.session = request.session, .request = request.client_id});
  if (pools_.Take(lease, turn)) {
    Announce(lease, turn);
  } else {
    sessions_.OnMaking(&state_.SessionAt(request.session), request.client_id,
                       lease->id);
  }
  // The gate was turned on while it waited, or there is room by now. (The engine
  // may have granted it just before it would have become a soft request.)
  if (state_.engine->Lease(lease->id)->hard) host_.Soften(*lease, turn);
}

Lease* LeaseDesk::Adopt(const LeaseRecord& record, quota::TenantId tenant,
                        quota::RequestId request, std::vector<Slab> slabs,
                        Turn& turn) {
  PendingAcquire asked;
  asked.id = request;
  asked.session = record.session;
  asked.pool = state_.FindPool(record.device)->id;
  asked.bytes = record.asked_bytes;
  asked.contents = record.contents;
  asked.asked = turn.now();
  asked.soft = record.soft;
  asked.share_as = record.share_as;
  asked.keep = record.keep;
  LeaseMove move;
  move.residence = record.place == LeaseRecord::Place::kHost
                       ? Residence::kEvicted
                       : Residence::kResident;
  move.torn = record.torn;
  move.resident_since = turn.now();
  for (const MappingRecord& mapping : record.mappings) {
    if (mapping.session == record.session) asked.client_id = mapping.request;
  }
  LeaseSlabs held;
  held.slabs = std::move(slabs);
  LeaseLife life;
  life.state = record.mapped ? v1::LeaseInfo::MAPPED : v1::LeaseInfo::GRANTED;
  life.since = record.since;
  LeaseSharing sharing;
  sharing.sealed = record.sealed;
  sharing.shared = record.shared;
  sharing.dropped = record.dropped;
  sharing.unused_since = turn.now();
  sharing.export_key = record.export_key;
  Recorder(state_).Touch(quota::LeaseId{record.id});
  return state_.leases.Edit({})
      .emplace(
          quota::LeaseId{record.id},
          Placed<Lease>(std::make_unique<Lease>(Lease{
              .id = quota::LeaseId{record.id},
              .request = asked,
              .tenant = tenant,
              .bytes = record.bytes,
              .held = Owned<LeaseSlabs, PoolKeeper>(std::in_place, held),
              .life = Owned<LeaseLife, LeaseDesk>(std::in_place, life),
              .copy = {},
              .move = Owned<LeaseMove, LeaseMover>(std::in_place, move),
              .sharing = Owned<LeaseSharing, Sharing>(std::in_place, sharing),
              .awaits_pause = {},
              .asked_back = {},
              .put_off = {},
              .reclaim = {}})))
      .first->second.get();
}

// create, store (done by the worker) -> journal -> send -> announce.
void LeaseDesk::Announce(Lease* lease, Turn& turn) {
  Session* session = &state_.SessionAt(lease->request.session);
  lease->life.Edit({}).state = v1::LeaseInfo::GRANTED;
  lease->life.Edit({}).since = turn.wall();
  Recorder(state_).Touch(lease->id);
  sessions_.SendSlabs(session, *lease, lease->request.client_id, /*move=*/0,
                      turn);
  v1::BrokerMessage answer;
  answer.set_request_id(lease->request.client_id);
  FillGrant(state_, *lease, answer.mutable_grant());
  sessions_.Answer(session, std::move(answer), turn);
  v1::Event event = LeaseEvent(state_, "lease_granted", *lease);
  *event.mutable_took() = ToProto(turn.now() - lease->request.asked);
  turn.Publish(std::move(event));
}

void LeaseDesk::MarkMapped(Session* session, const v1::Mapped& mapped) {
  Lease* lease = FindLease(state_, *session, mapped.lease_id());
  if (lease == nullptr || lease->life->state == v1::LeaseInfo::CREATING) return;
  // Said again, it changes nothing, and costs no record.
  if (lease->MappingOf(session->id)->mapped) return;
  lease->life.Edit({}).state = v1::LeaseInfo::MAPPED;
  mover_.MarkMapped(lease, *session);
}

void LeaseDesk::Cancel(const PendingAnswer& asked) const {
  const auto lease = state_.leases->find(asked.being_made);
  if (lease != state_.leases->end() &&
      lease->second->request.id == asked.request)
    lease->second->life.Edit({}).cancelled = true;
}

void LeaseDesk::EndLease(quota::LeaseId id, bool reuse, Turn& turn) {
  Lease* lease = &state_.LeaseAt(id);
  if (lease->held->preparing || lease->copy->copies > 0) {
    // OnPrepared, or CopiesOver, comes back to it.
    lease->life.Edit({}).doomed = true;
    return mover_.Doom(lease, turn);
  }
  mover_.Forget(lease);
  index_.Forget(lease);
  host_.Release(id);
  turn.Publish(
      LeaseEvent(state_, reuse ? "lease_released" : "lease_reclaimed", *lease));
  // Before the engine may grant these bytes to another: the device works in
  // order, so the destruction comes before that other's creation.
  const Pool& pool = state_.PoolAt(lease->request.pool);
  pools_.GiveBack(
      lease, reuse ? pool.slabs->options().reuse_for : quota::Nanoseconds{0},
      turn);
  state_.leases.Edit({}).erase(id);
  quota_.Tell(quota::Released{id}, turn);
}

void LeaseDesk::OnPrepared(Lease* lease, const SlabsMade& made, Turn& turn) {
  if (lease->life->doomed) {
    const quota::LeaseId id = lease->id;
    AbandonLease(lease, made, turn);
    quota_.Tell(quota::GrantFailed{id}, turn);
  } else if (made.not_created.empty()) {
    Announce(lease, turn);
  } else {
    OnPrepareFailed(lease, made, turn);
  }
}

// One ready slab is given up for the missing bytes; then the engine decides
// again, now that it knows what is missing.
void LeaseDesk::OnPrepareFailed(Lease* lease, const SlabsMade& made,
                                Turn& turn) {
  const absl::Status given_up = WhyGivenUp(state_, *lease);
  if (absl::IsResourceExhausted(made.status) && given_up.ok() &&
      pools_.TryWithoutReady(lease, made.not_created, turn)) {
    return;
  }
  v1::Event event = NewEvent(state_, "create_failed", lease->tenant);
  event.set_device(state_.PoolAt(lease->request.pool).uuid());
  event.set_bytes(lease->bytes);
  event.set_message(std::string(made.status.message()));
  turn.Publish(std::move(event));
  turn.Queue(NotMade{lease->id, lease->request, made.status, given_up});
  AbandonLease(lease, made, turn);
}

void LeaseDesk::AbandonLease(Lease* lease, const SlabsMade& made, Turn& turn) {
  const quota::LeaseId id = lease->id;
  pools_.GiveUp(lease, made.not_created, turn);
  mover_.Forget(lease);
  index_.Forget(lease);
  host_.Release(id);
  state_.leases.Edit({}).erase(id);
}

}  // namespace gmb::broker
