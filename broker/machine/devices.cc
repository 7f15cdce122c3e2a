// Leases on their way to and from the devices, and what the devices report.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/granularity.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kRefillBackOff = std::chrono::seconds(1);
constexpr uint32_t kMaxAttempts = 3;
// While nobody outside takes what is freed.
constexpr uint32_t kMostAttempts = 256;

std::vector<uint64_t> NotCreated(const HandOver& slabs,
                                 const DeviceResult& result) {
  return {slabs.create_bytes.begin() +
              static_cast<std::ptrdiff_t>(result.created.size()),
          slabs.create_bytes.end()};
}

void OnRefilled(const RefillJob& job, const DeviceResult& result,
                quota::Instant now, Pool* pool) {
  for (const Slab& slab : result.created) pool->slabs.ReadyCreated(slab);
  for (const uint64_t bytes : NotCreated(job.slabs, result)) {
    pool->slabs.ReadyFailed(bytes);
    pool->refill_after = now + kRefillBackOff;
  }
}

}  // namespace

void Machine::Give(Pool* pool, DeviceJob job, Turn& turn) {
  ++pool->jobs;
  turn.Add(broker::Give{pool->id, std::move(job)});
}

// create, store (done by the worker) -> journal -> send -> announce.
void Machine::Announce(Lease* lease, Turn& turn) {
  Session* session = &state_.SessionAt(lease->request.session);
  const Pool& pool = state_.PoolAt(lease->request.pool);
  turn.Add(RecordLease{{.lease = lease->id.value,
                        .session = session->id,
                        .tenant = lease->tenant.value,
                        .pool = pool.id.value,
                        .bytes = lease->bytes,
                        .slabs = static_cast<uint32_t>(lease->slabs.size())}});
  lease->state = v1::LeaseInfo::GRANTED;
  lease->since = turn.wall();
  SendSlabs(session, *lease, lease->request.client_id, /*move=*/0, turn);
  v1::BrokerMessage answer;
  answer.set_request_id(lease->request.client_id);
  FillGrant(*lease, answer.mutable_grant());
  Answer(session, std::move(answer), turn);
  v1::Event event = NewEvent("lease_granted", lease->tenant);
  event.set_session_id(session->id);
  event.set_lease_id(lease->id.value);
  event.set_device(pool.uuid());
  event.set_bytes(lease->bytes);
  *event.mutable_took() = ToProto(turn.now() - lease->request.asked);
  turn.Publish(std::move(event));
}

void Machine::FillGrant(const Lease& lease, v1::Grant* grant) const {
  grant->set_lease_id(lease.id.value);
  grant->set_bytes(lease.bytes);
  grant->set_device(state_.PoolAt(lease.request.pool).uuid());
  grant->set_slabs(static_cast<uint32_t>(lease.slabs.size()));
}

// For a Grant (the request that it answers), or for a Map (its number).
void Machine::SendSlabs(Session* session, const Lease& lease,
                        uint64_t request_id, uint64_t move, Turn& turn) {
  for (size_t first = 0; first < lease.slabs.size(); first += ipc::kMaxFds) {
    const size_t end = std::min(first + ipc::kMaxFds, lease.slabs.size());
    broker::SendSlabs send;
    send.session = session->id;
    send.packet.set_frame_id(++session->last_frame);
    send.packet.set_lease_id(lease.id.value);
    send.packet.set_request_id(request_id);
    send.packet.set_move(move);
    send.packet.set_first_slab(static_cast<uint32_t>(first));
    send.packet.set_slabs_in_lease(static_cast<uint32_t>(lease.slabs.size()));
    for (size_t i = first; i < end; ++i) {
      send.packet.add_slab_bytes(lease.slabs[i].bytes);
      send.slabs.push_back(lease.slabs[i].id);
    }
    turn.Add(std::move(send));
  }
}

void Machine::EndLease(quota::LeaseId id, bool reuse, Turn& turn) {
  Lease* lease = &state_.LeaseAt(id);
  Pool* pool = &state_.PoolAt(lease->request.pool);
  state_.shared_leases.erase({lease->tenant, id});
  state_.asked_back.Forget(*lease);
  EndName(lease->tenant, lease->request, turn);
  if (lease->preparing || lease->copies > 0) {
    lease->doomed = true;  // see OnPrepared and OnCopied
    lease->mappings.clear();
    state_.moving.insert(id);
    state_.reclaim.Touch(state_, *lease);
    if (lease->copies > 0) turn.Add(CancelCopies{pool->id, lease->copy_group});
    return;
  }
  state_.moving.erase(id);
  LeaveRoom(lease);
  turn.Add(ForgetLease{id.value});
  v1::Event event =
      NewEvent(reuse ? "lease_released" : "lease_reclaimed", lease->tenant);
  event.set_session_id(lease->request.session);
  event.set_lease_id(id.value);
  event.set_device(pool->uuid());
  event.set_bytes(lease->bytes);
  turn.Publish(std::move(event));
  // Before the engine may grant these bytes to another: the device works in
  // order, so the destruction comes before that other's creation.
  GiveBack(pool, *lease,
           reuse ? pool->slabs.options().reuse_for : quota::Nanoseconds{0},
           turn);
  state_.leases.erase(id);
  Tell(quota::Released{id}, turn);
}

// Of a lease that has ended. Room in the host pool is for leases of all pools.
void Machine::LeaveRoom(Lease* lease) {
  state_.reclaim.Forget(*lease);
  if (!state_.host_books.HasRoom(lease->id)) return;
  state_.host_books.Release(lease->id);
  for (const auto& [id, pool] : state_.pools) state_.reclaim.MarkChanged(id);
}

// Also slabs that nobody will ask for again are kept until others have a use
// for their bytes (MaintainPools, or the next lease): the worker destroys and
// creates them in turn, so that little lies free for somebody outside to take.
void Machine::GiveBack(Pool* pool, const Lease& lease,
                       quota::Nanoseconds reuse_for, Turn& turn) {
  if (!pool->lost && pool->slabs.MayKeep(lease.slabs.size())) {
    pool->slabs.Return(lease.tenant, lease.slabs, turn.now() + reuse_for);
  } else {
    Give(pool, DestroyJob{pool->slabs.Condemn(lease.tenant, lease.slabs)},
         turn);
  }
}

void Machine::OnDeviceResult(quota::PoolId pool_id, const DeviceResult& result,
                             Turn& turn) {
  Pool* pool = &state_.PoolAt(pool_id);
  --pool->jobs;
  pool->slabs.Destroyed(result.destroyed_bytes);
  pool->slabs.Spared(result.spared, turn.now());
  OnReading(pool, result.reading, turn);
  if (absl::IsUnavailable(result.status))
    OnDeviceLost(pool, result.status, turn);
  if (const auto* prepare = std::get_if<PrepareJob>(&result.job)) {
    OnPrepared(pool, *prepare, result, turn);
  } else if (const auto* refill = std::get_if<RefillJob>(&result.job)) {
    OnRefilled(*refill, result, turn.now(), pool);
  }
}

void Machine::OnPrepared(Pool* pool, const PrepareJob& job,
                         const DeviceResult& result, Turn& turn) {
  Lease* lease = &state_.LeaseAt(job.lease);
  lease->preparing = false;
  for (const Slab& slab : result.created) pool->slabs.Created(slab.bytes);
  lease->slabs.insert(lease->slabs.end(), result.created.begin(),
                      result.created.end());
  const std::vector<uint64_t> not_created = NotCreated(job.slabs, result);
  if (lease->doomed) {
    AbandonLease(pool, lease, not_created, turn);
  } else if (lease->residence == Residence::kRestoring) {
    if (!not_created.empty()) {
      return OnRestoreNotPrepared(pool, lease, not_created, result.status,
                                  turn);
    }
    FillAndMap(lease, turn);
  } else if (not_created.empty()) {
    Announce(lease, turn);
  } else {
    OnPrepareFailed(pool, lease, not_created, result.status, turn);
  }
}

// Why nobody is to get it any more, whatever became of its slabs.
absl::Status Machine::WhyGivenUp(const Lease& lease) const {
  if (lease.request.cancelled) {
    return proto::MakeError(v1::CANCELLED_BY_CLIENT,
                            "the request was withdrawn");
  }
  return CheckStays(lease.tenant);
}

// One ready slab is given up for the missing bytes; then the engine decides
// again, now that it knows what is missing. Not more, and none while somebody
// outside takes what is freed: that one would win every slab given up.
void Machine::OnPrepareFailed(Pool* pool, Lease* lease,
                              const std::vector<uint64_t>& not_created,
                              const absl::Status& status, Turn& turn) {
  const bool no_memory = absl::IsResourceExhausted(status);
  const absl::Status given_up = WhyGivenUp(*lease);
  if (no_memory && given_up.ok() && pool->missing_bytes == 0 &&
      !lease->gave_up_ready) {
    lease->gave_up_ready = true;
    if (std::optional<Condemned> ready = pool->slabs.GiveUpReady()) {
      lease->preparing = true;
      return Give(pool, PrepareJob{lease->id, {{*ready}, not_created}}, turn);
    }
  }
  PendingAcquire request = lease->request;
  Session* session = &state_.SessionAt(request.session);
  v1::Event event = NewEvent("create_failed", lease->tenant);
  event.set_device(pool->uuid());
  event.set_bytes(lease->bytes);
  event.set_message(std::string(status.message()));
  turn.Publish(std::move(event));
  AbandonLease(pool, lease, not_created, turn);
  ++request.attempts;
  // What a client says it has unmapped and has not is found out slab by slab.
  const bool unreturned = pool->missing_bytes == 0 &&
                          request.attempts < kMostAttempts &&
                          turn.now() < request.deadline;
  if (!given_up.ok()) {
    EndName(*session->tenant, request, turn);
    return Refuse(session, request.client_id, given_up, turn);
  }
  if (no_memory && (request.attempts < kMaxAttempts || unreturned)) {
    state_.pending[request.id] = request;
    return Ask(request, turn);
  }
  EndName(*session->tenant, request, turn);
  Refuse(session, request.client_id,
         no_memory
             ? proto::MakeError(
                   v1::POOL_EXHAUSTED,
                   absl::StrCat(
                       "the device has less memory than its pool: something "
                       "outside the broker took it; try again: bytes=",
                       request.bytes),
                   {.retry_after = absl::Milliseconds(500)})
             : proto::MakeError(
                   pool->lost ? v1::DEVICE_LOST : v1::DEVICE_ERROR,
                   absl::StrCat("the device could not make the slabs: ",
                                status.message())),
         turn);
}

void Machine::AbandonLease(Pool* pool, Lease* lease,
                           const std::vector<uint64_t>& not_created,
                           Turn& turn) {
  const quota::LeaseId id = lease->id;
  for (const uint64_t bytes : not_created) pool->slabs.CreateFailed(bytes);
  if (!lease->slabs.empty()) GiveBack(pool, *lease, {}, turn);
  if (Session* session = state_.sessions.Find(lease->request.session))
    session->leases.erase(id);
  if (lease->state != v1::LeaseInfo::CREATING) turn.Add(ForgetLease{id.value});
  LeaveRoom(lease);
  state_.moving.erase(id);
  state_.leases.erase(id);
  Tell(quota::GrantFailed{id}, turn);
}

void Machine::OnDeviceLost(Pool* pool, const absl::Status& status, Turn& turn) {
  if (std::exchange(pool->lost, true)) return;
  pool->problem =
      absl::StrCat("the device is lost; restart the broker once it is back: ",
                   status.message());
  v1::Event event = NewEvent("device_lost", std::nullopt);
  event.set_device(pool->uuid());
  event.set_message(pool->problem);
  turn.Publish(std::move(event));
  Tell(quota::PoolDrain{pool->id, true}, turn);
}

void Machine::SyncCapacities() {
  for (auto& [id, pool] : state_.pools)
    pool->slabs.SetCapacity(state_.engine.Pool(id)->capacity_bytes);
}

// Whoever may hold unreturned slabs: who has a session, and who has had one.
std::vector<pid_t> Machine::ClientProcesses(const Pool& pool) const {
  if (pool.reading.unreturned.empty()) return {};
  std::vector<pid_t> pids(state_.sessions.ended_clients().begin(),
                          state_.sessions.ended_clients().end());
  for (const auto& [pid, sessions] : state_.sessions.processes())
    pids.push_back(pid);
  return pids;
}

void Machine::MaintainPools(Turn& turn) {
  const quota::Instant now = turn.now();
  for (auto& [id, pool] : state_.pools) {
    if (pool->lost) continue;
    std::optional<SlabPool::Refill> refill;
    if (pool->jobs == 0) refill = pool->slabs.NextShrink();
    if (!refill.has_value() && now >= pool->refill_after && MayRefill(*pool))
      refill = pool->slabs.NextRefill(now);
    if (refill.has_value()) {
      Give(pool.get(),
           RefillJob{
               {std::move(refill->destroy), std::move(refill->create_bytes)}},
           turn);
    }
    if (now >= pool->next_audit) {
      pool->audit_interval =
          pool->reading.unreturned.empty()
              ? Pool::kAuditInterval
              : std::clamp(pool->audit_interval * 2, Pool::kFirstAudit,
                           Pool::kAuditInterval);
      pool->next_audit = now + pool->audit_interval;
      Give(pool.get(), AuditJob{ClientProcesses(*pool)}, turn);
    }
  }
}

}  // namespace gmb::broker
