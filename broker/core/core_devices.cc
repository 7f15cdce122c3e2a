// Leases on their way to and from the devices, and what the devices report.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/granularity.h"
#include "broker/core/wire_form.h"
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

void Core::Give(Pool* pool, DeviceJob job, Afterwards* after) {
  ++pool->jobs;
  pool->worker->Push(std::move(job));
  after->wake.push_back(pool->worker.get());
}

// create, store (done by the worker) -> journal -> send -> announce.
void Core::Announce(Lease* lease, Afterwards* after) {
  Session* session = sessions_.at(lease->request.session);
  const Pool& pool = *pools_.at(lease->request.pool);
  deps_.journal->Granted({.lease = lease->id.value,
                          .session = session->id,
                          .tenant = lease->tenant.value,
                          .pool = pool.id.value,
                          .bytes = lease->bytes,
                          .slabs = static_cast<uint32_t>(lease->slabs.size())});
  lease->state = v1::LeaseInfo::GRANTED;
  lease->since = deps_.clock->WallTime();
  SendSlabs(session, *lease, lease->request.client_id, /*move=*/0);
  v1::BrokerMessage answer;
  answer.set_request_id(lease->request.client_id);
  FillGrant(*lease, answer.mutable_grant());
  Answer(session, std::move(answer), after);
  v1::Event event = NewEvent("lease_granted", lease->tenant);
  event.set_session_id(session->id);
  event.set_lease_id(lease->id.value);
  event.set_device(pool.uuid());
  event.set_bytes(lease->bytes);
  *event.mutable_took() = ToProto(deps_.clock->Now() - lease->request.asked);
  deps_.events->Publish(std::move(event));
}

void Core::FillGrant(const Lease& lease, v1::Grant* grant) const {
  grant->set_lease_id(lease.id.value);
  grant->set_bytes(lease.bytes);
  grant->set_device(pools_.at(lease.request.pool)->uuid());
  grant->set_slabs(static_cast<uint32_t>(lease.slabs.size()));
}

// For a Grant (the request that it answers), or for a Map (its number).
void Core::SendSlabs(Session* session, const Lease& lease, uint64_t request_id,
                     uint64_t move) const {
  for (size_t first = 0; first < lease.slabs.size(); first += ipc::kMaxFds) {
    const size_t end = std::min(first + ipc::kMaxFds, lease.slabs.size());
    v1::BrokerFrame message;
    v1::Slabs* slabs = message.mutable_slabs();
    SlabFrame frame;
    frame.frame_id = ++session->last_frame;
    slabs->set_frame_id(frame.frame_id);
    slabs->set_lease_id(lease.id.value);
    slabs->set_request_id(request_id);
    slabs->set_move(move);
    slabs->set_first_slab(static_cast<uint32_t>(first));
    slabs->set_slabs_in_lease(static_cast<uint32_t>(lease.slabs.size()));
    for (size_t i = first; i < end; ++i) {
      slabs->add_slab_bytes(lease.slabs[i].bytes);
      SharedHandle handle = deps_.keeper->Get(lease.slabs[i].id);
      if (const auto* opaque = std::get_if<device::IpcHandle>(handle.get())) {
        slabs->add_ipc_handles(opaque->data(), opaque->size());
      } else {
        frame.handles.push_back(std::move(handle));
      }
    }
    frame.bytes = message.SerializeAsString();
    session->outbox->Push(std::move(frame));
  }
}

void Core::EndLease(quota::LeaseId id, bool reuse, Afterwards* after) {
  Lease* lease = leases_.at(id).get();
  Pool* pool = pools_.at(lease->request.pool).get();
  shared_leases_.erase(id);
  EndName(lease->tenant, lease->request, after);
  if (lease->preparing || lease->copies > 0) {
    lease->doomed = true;  // see OnPrepared and OnCopied
    lease->mappings.clear();
    moving_.insert(id);
    if (lease->copies > 0)
      after->cancel.emplace_back(pool->copier.get(), lease->copy_group);
    return;
  }
  moving_.erase(id);
  host_books_.Release(id);
  deps_.journal->Ended(id.value);
  v1::Event event =
      NewEvent(reuse ? "lease_released" : "lease_reclaimed", lease->tenant);
  event.set_session_id(lease->request.session);
  event.set_lease_id(id.value);
  event.set_device(pool->uuid());
  event.set_bytes(lease->bytes);
  deps_.events->Publish(std::move(event));
  // Before the engine may grant these bytes to another: the device works in
  // order, so the destruction comes before that other's creation.
  GiveBack(pool, *lease,
           reuse ? pool->slabs.options().reuse_for : quota::Nanoseconds{0},
           after);
  leases_.erase(id);
  Tell(quota::Released{id}, after);
}

// Also slabs that nobody will ask for again are kept until others have a use
// for their bytes (Maintain, or the next lease): the worker destroys and
// creates them in turn, so that little lies free for somebody outside to take.
void Core::GiveBack(Pool* pool, const Lease& lease,
                    quota::Nanoseconds reuse_for, Afterwards* after) {
  if (!pool->lost && pool->slabs.MayKeep(lease.slabs.size())) {
    pool->slabs.Return(lease.tenant, lease.slabs,
                       deps_.clock->Now() + reuse_for);
  } else {
    Give(pool, DestroyJob{pool->slabs.Condemn(lease.tenant, lease.slabs)},
         after);
  }
}

void Core::OnDeviceResult(quota::PoolId pool_id, DeviceResult result) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    auto it = pools_.find(pool_id);
    if (it == pools_.end()) return;  // stopping
    Pool* pool = it->second.get();
    --pool->jobs;
    pool->slabs.Destroyed(result.destroyed_bytes);
    pool->slabs.Spared(result.spared, deps_.clock->Now());
    OnReading(pool, result.reading, &after);
    if (absl::IsUnavailable(result.status))
      OnDeviceLost(pool, result.status, &after);
    if (const auto* prepare = std::get_if<PrepareJob>(&result.job)) {
      OnPrepared(pool, *prepare, result, &after);
    } else if (const auto* refill = std::get_if<RefillJob>(&result.job)) {
      OnRefilled(*refill, result, deps_.clock->Now(), pool);
    }
    Maintain(&after);
  }
  after.Run(this);
}

void Core::OnPrepared(Pool* pool, const PrepareJob& job,
                      const DeviceResult& result, Afterwards* after) {
  Lease* lease = leases_.at(job.lease).get();
  lease->preparing = false;
  for (const Slab& slab : result.created) pool->slabs.Created(slab.bytes);
  lease->slabs.insert(lease->slabs.end(), result.created.begin(),
                      result.created.end());
  const std::vector<uint64_t> not_created = NotCreated(job.slabs, result);
  if (lease->doomed) {
    AbandonLease(pool, lease, not_created, after);
  } else if (lease->residence == Residence::kRestoring) {
    if (!not_created.empty()) {
      return OnRestoreNotPrepared(pool, lease, not_created, result.status,
                                  after);
    }
    FillAndMap(lease, after);
  } else if (not_created.empty()) {
    Announce(lease, after);
  } else {
    OnPrepareFailed(pool, lease, not_created, result.status, after);
  }
}

// One ready slab is given up for the missing bytes; then the engine decides
// again, now that it knows what is missing. Not more, and none while somebody
// outside takes what is freed: that one would win every slab given up.
void Core::OnPrepareFailed(Pool* pool, Lease* lease,
                           const std::vector<uint64_t>& not_created,
                           const absl::Status& status, Afterwards* after) {
  const bool no_memory = absl::IsResourceExhausted(status);
  if (no_memory && pool->missing_bytes == 0 && !lease->gave_up_ready) {
    lease->gave_up_ready = true;
    if (std::optional<Condemned> ready = pool->slabs.GiveUpReady()) {
      lease->preparing = true;
      return Give(pool, PrepareJob{lease->id, {{*ready}, not_created}}, after);
    }
  }
  PendingAcquire request = lease->request;
  Session* session = sessions_.at(request.session);
  v1::Event event = NewEvent("create_failed", lease->tenant);
  event.set_device(pool->uuid());
  event.set_bytes(lease->bytes);
  event.set_message(std::string(status.message()));
  deps_.events->Publish(std::move(event));
  AbandonLease(pool, lease, not_created, after);
  ++request.attempts;
  // What a client says it has unmapped and has not is found out slab by slab.
  const bool unreturned = pool->missing_bytes == 0 &&
                          request.attempts < kMostAttempts &&
                          deps_.clock->Now() < request.deadline;
  if (no_memory && (request.attempts < kMaxAttempts || unreturned)) {
    pending_[request.id] = request;
    return Ask(request, after);
  }
  EndName(*session->tenant, request, after);
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
         after);
}

void Core::AbandonLease(Pool* pool, Lease* lease,
                        const std::vector<uint64_t>& not_created,
                        Afterwards* after) {
  const quota::LeaseId id = lease->id;
  for (const uint64_t bytes : not_created) pool->slabs.CreateFailed(bytes);
  if (!lease->slabs.empty()) GiveBack(pool, *lease, {}, after);
  if (Session* session = sessions_.Find(lease->request.session))
    session->leases.erase(id);
  if (lease->state != v1::LeaseInfo::CREATING) deps_.journal->Ended(id.value);
  host_books_.Release(id);
  moving_.erase(id);
  leases_.erase(id);
  Tell(quota::GrantFailed{id}, after);
}

void Core::OnDeviceLost(Pool* pool, const absl::Status& status,
                        Afterwards* after) {
  if (std::exchange(pool->lost, true)) return;
  pool->problem =
      absl::StrCat("the device is lost; restart the broker once it is back: ",
                   status.message());
  v1::Event event = NewEvent("device_lost", std::nullopt);
  event.set_device(pool->uuid());
  event.set_message(pool->problem);
  deps_.events->Publish(std::move(event));
  Tell(quota::PoolDrain{pool->id, true}, after);
}

void Core::SyncCapacities() {
  for (auto& [id, pool] : pools_)
    pool->slabs.SetCapacity(engine_.Pool(id)->capacity_bytes);
}

// Whoever may hold unreturned slabs: who has a session, and who has had one.
std::vector<pid_t> Core::ClientProcesses(const Pool& pool) const {
  if (pool.reading.unreturned.empty()) return {};
  std::vector<pid_t> pids(sessions_.ended_clients().begin(),
                          sessions_.ended_clients().end());
  for (const auto& [id, session] : sessions_) pids.push_back(session->peer.pid);
  return pids;
}

void Core::Maintain(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  for (auto& [id, pool] : pools_) {
    if (pool->lost) continue;
    std::optional<SlabPool::Refill> refill;
    if (pool->jobs == 0) refill = pool->slabs.NextShrink();
    if (!refill.has_value() && now >= pool->refill_after && MayRefill(*pool))
      refill = pool->slabs.NextRefill(now);
    if (refill.has_value()) {
      Give(pool.get(),
           RefillJob{
               {std::move(refill->destroy), std::move(refill->create_bytes)}},
           after);
    }
    if (now >= pool->next_audit) {
      pool->audit_interval =
          pool->reading.unreturned.empty()
              ? Pool::kAuditInterval
              : std::clamp(pool->audit_interval * 2, Pool::kFirstAudit,
                           Pool::kAuditInterval);
      pool->next_audit = now + pool->audit_interval;
      Give(pool.get(), AuditJob{ClientProcesses(*pool)}, after);
    }
  }
  Reclaim(after);
  after->wake_ticker |= NextDue() < ticker_due_;
}

}  // namespace gmb::broker
