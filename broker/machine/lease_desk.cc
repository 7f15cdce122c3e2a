// Leases: made of slabs once the engine has granted them, announced, ended.
#include "broker/machine/lease_desk.h"

#include <memory>
#include <string>
#include <utility>

#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
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

void FillGrant(const State& state, const Lease& lease, v1::Grant* grant) {
  grant->set_lease_id(lease.id.value);
  grant->set_bytes(lease.bytes);
  grant->set_device(state.PoolAt(lease.request.pool).uuid());
  grant->set_slabs(static_cast<uint32_t>(lease.held->slabs.size()));
}

void LeaseDesk::Make(const quota::Granted& granted,
                     const PendingAcquire& request, Turn& turn) {
  Lease* lease =
      state_.leases.Edit({})
          .emplace(granted.lease, Placed<Lease>(std::make_unique<Lease>(
                                      Lease{.id = granted.lease,
                                            .request = request,
                                            .tenant = granted.tenant,
                                            .bytes = granted.bytes,
                                            .held = {},
                                            .life = {},
                                            .copy = {},
                                            .move = {},
                                            .sharing = {},
                                            .awaits_pause = {},
                                            .asked_back = {},
                                            .reclaim = {}})))
          .first->second.get();
  lease->life.Edit({}).since = turn.wall();
  mover_.Begin(lease, &state_.SessionAt(request.session), turn);
  if (pools_.Take(lease, turn)) Announce(lease, turn);
  // The gate was turned on while it waited, or there is room by now.
  if (!request.soft) host_.Soften(*lease, turn);
}

// create, store (done by the worker) -> journal -> send -> announce.
void LeaseDesk::Announce(Lease* lease, Turn& turn) {
  Session* session = &state_.SessionAt(lease->request.session);
  lease->life.Edit({}).state = v1::LeaseInfo::GRANTED;
  lease->life.Edit({}).since = turn.wall();
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
  if (lease != nullptr && lease->life->state == v1::LeaseInfo::GRANTED)
    lease->life.Edit({}).state = v1::LeaseInfo::MAPPED;
}

void LeaseDesk::Cancel(const Session& session, quota::RequestId request) {
  for (const quota::LeaseId id : *session.leases) {
    Lease& lease = state_.LeaseAt(id);
    if (lease.request.id == request) lease.life.Edit({}).cancelled = true;
  }
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
