// What a client asks on its stream, and what the quota engine answers.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/granularity.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

v1::BrokerMessage AnswerTo(uint64_t client_id) {
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  return answer;
}

}  // namespace

void Core::HandleMessage(uint64_t session_id,
                         const v1::ClientMessage& message) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    Session* session = sessions_.Find(session_id);
    if (session == nullptr) return;
    if (!HandleNotice(session, message, &after))
      HandleOnce(session, message, &after);
    Maintain(&after);
  }
  after.Run(this);
}

// What is repeated on a new stream has no second effect.
void Core::HandleOnce(Session* session, const v1::ClientMessage& message,
                      Afterwards* after) {
  const uint64_t id = message.request_id();
  if (id == 0) {
    return Refuse(
        session, 0,
        proto::MakeError(v1::BAD_REQUEST, "a request needs an id above 0",
                         {.field = "request_id"}),
        after);
  }
  if (const v1::BrokerMessage* answer = session->answers.Find(id))
    return Say(session, *answer, after);
  if (session->answers.IsForgotten(id)) {
    // Not logged as an answer: it must not push out one that still counts.
    v1::BrokerMessage too_old = AnswerTo(id);
    *too_old.mutable_error() = proto::ToWireError(proto::MakeError(
        v1::BAD_REQUEST, "the request id is too old: ids must rise",
        {.field = "request_id"}));
    return Say(session, std::move(too_old), after);
  }
  const bool to_come = session->pending.contains(id) ||
                       session->restores.contains(id) ||
                       shared_names_.WaitedFor(session->id, id) != nullptr;
  if (!to_come) HandleRequest(session, id, message, after);
}

bool Core::HandleNotice(Session* session, const v1::ClientMessage& message,
                        Afterwards* after) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kMapped:
      MarkMapped(session, message.mapped(), after);
      return true;
    case v1::ClientMessage::kCancel:
      Cancel(session, message.cancel(), after);
      return true;
    case v1::ClientMessage::kUnmapped:
      OnUnmapped(session, message.unmapped(), after);
      return true;
    case v1::ClientMessage::kSetTrimmable:
      SetTrimmable(session, message.set_trimmable());
      return true;
    case v1::ClientMessage::kTrimmed:
      OnTrimmed(session, message.trimmed());
      return true;
    default:
      return false;
  }
}

void Core::HandleRequest(Session* session, uint64_t id,
                         const v1::ClientMessage& message, Afterwards* after) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kAcquire:
      return Acquire(session, id, message.acquire(), after);
    case v1::ClientMessage::kRelease:
      return Release(session, id, message.release(), after);
    case v1::ClientMessage::kGetQuota:
      return ReportQuota(session, id, after);
    case v1::ClientMessage::kSetGate:
      return SetGate(session, id, message.set_gate(), after);
    case v1::ClientMessage::kRestore:
      return Restore(session, id, message.restore(), after);
    case v1::ClientMessage::kSeal:
      return Seal(session, id, message.seal().lease_id(), after);
    case v1::ClientMessage::kAttach:
      return Attach(session, id, message.attach(), after);
    case v1::ClientMessage::kDrop:
      return Drop(session, id, message.drop().name(), after);
    default:
      return Refuse(
          session, id,
          proto::MakeError(v1::BAD_REQUEST,
                           "the message asks for nothing this broker knows",
                           {.field = "kind"}),
          after);
  }
}

absl::StatusOr<PendingAcquire> Core::CheckAcquire(
    const Session& session, uint64_t client_id,
    const v1::Acquire& acquire) const {
  if (session.pending.size() >= options_.max_requests_per_session) {
    return TooManyRequests(options_.max_requests_per_session);
  }
  if (absl::Status stays = CheckStays(*session.tenant); !stays.ok())
    return stays;
  const Pool* pool = FindPool(acquire.device());
  if (pool == nullptr) return NoSuchDevice(acquire.device());
  if (!v1::Contents_IsValid(acquire.contents())) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "contents is PRESERVE, DISCARD or RESIDENT",
                            {.field = "contents"});
  }
  const uint64_t bytes =
      RoundUp(acquire.bytes(), pool->info().granularity_bytes);
  if (bytes == 0 || bytes > quota::kMaxPoolBytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a lease has at least 1 byte and at most 64 TiB: bytes=",
                     acquire.bytes()),
        {.field = "bytes"});
  }
  if (absl::Status name = shared_names_.Check(*session.tenant, acquire);
      !name.ok()) {
    return name;
  }
  PendingAcquire request;
  request.session = session.id;
  request.client_id = client_id;
  request.pool = pool->id;
  request.bytes = bytes;
  request.contents = acquire.contents() == v1::CONTENTS_UNSPECIFIED
                         ? v1::PRESERVE
                         : acquire.contents();
  request.share_as = acquire.share_as();
  request.keep = acquire.keep();
  request.asked = deps_.clock->Now();
  request.deadline = request.asked + SaneWait(acquire.wait());
  return request;
}

void Core::Acquire(Session* session, uint64_t client_id,
                   const v1::Acquire& acquire, Afterwards* after) {
  absl::StatusOr<PendingAcquire> request =
      CheckAcquire(*session, client_id, acquire);
  if (!request.ok()) return Refuse(session, client_id, request.status(), after);
  request->id = quota::RequestId{next_request_++};
  request->soft =
      CanBeTaken(*session, *pools_.at(request->pool), request->contents) &&
      (request->contents == v1::DISCARD ||
       host_books_.HasRoomFor(*session->tenant, request->bytes));
  if (!request->share_as.empty())
    shared_names_.Take(*session->tenant, *request);
  session->pending[client_id] = request->id;
  Ask(pending_[request->id] = *request, after);
}

void Core::Ask(const PendingAcquire& request, Afterwards* after) {
  const Session& session = *sessions_.at(request.session);
  const Pool& pool = *pools_.at(request.pool);
  const auto handles = static_cast<uint32_t>(
      std::min<uint64_t>(pool.slabs.HandlesFor(request.bytes), UINT32_MAX));
  Tell(quota::Acquire{request.id, quota::SessionId{session.id}, *session.tenant,
                      request.pool, request.bytes, handles, request.deadline,
                      /*hard=*/!request.soft},
       after);
}

void Core::Cancel(Session* session, const v1::Cancel& cancel,
                  Afterwards* after) {
  const uint64_t client_id = cancel.acquire_request_id();
  if (shared_names_.WaitedFor(session->id, client_id) != nullptr)
    return GiveUpAttach(
        session, client_id,
        proto::MakeError(v1::CANCELLED_BY_CLIENT, "the request was withdrawn"),
        after);
  auto it = session->pending.find(client_id);
  if (it == session->pending.end()) return;  // answered already
  Tell(quota::Cancel{it->second}, after);
}

Lease* Core::FindLease(const Session& session, uint64_t lease) {
  const quota::LeaseId id{lease};
  return session.leases.contains(id) ? leases_.at(id).get() : nullptr;
}

void Core::MarkMapped(Session* session, const v1::Mapped& mapped,
                      Afterwards* after) {
  if (mapped.move() != 0) return OnMapped(session, mapped, after);
  Lease* lease = FindLease(*session, mapped.lease_id());
  if (lease != nullptr && lease->state == v1::LeaseInfo::GRANTED) {
    lease->state = v1::LeaseInfo::MAPPED;
  }
}

void Core::Release(Session* session, uint64_t client_id,
                   const v1::Release& release, Afterwards* after) {
  Lease* lease = FindLease(*session, release.lease_id());
  // A lease that was not announced yet does not exist for the client.
  if (lease == nullptr || lease->state == v1::LeaseInfo::CREATING) {
    return Refuse(session, client_id, NoSuchLease(release.lease_id()), after);
  }
  session->leases.erase(lease->id);
  CountTrimmed(session, *lease);
  v1::BrokerMessage answer = AnswerTo(client_id);
  answer.mutable_released()->set_lease_id(release.lease_id());
  Answer(session, std::move(answer), after);
  if (lease->shared) {
    const quota::LeaseId id = lease->id;
    Detach(session, lease, /*reuse=*/true, after);
    // Other users may have waited for the end of this one's use of it, or of
    // the pause that ends with it.
    AdvanceUsersOf({&id, 1}, after);
  } else {
    EndLease(lease->id, /*reuse=*/true, after);
  }
  AdvanceRestore(session, after);  // it may have been the last one away
}

void Core::ReportQuota(Session* session, uint64_t client_id,
                       Afterwards* after) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  v1::QuotaReport* report = answer.mutable_quota_report();
  report->set_tenant(tenants_.at(*session->tenant).policy.name);
  for (const auto& [id, pool] : pools_)
    *report->add_quotas() = View(*session->tenant, *pool);
  Answer(session, std::move(answer), after);
}

void Core::Answer(Session* session, v1::BrokerMessage answer,
                  Afterwards* after) {
  session->pending.erase(answer.request_id());
  session->answers.Add(answer);
  Say(session, std::move(answer), after);
}

void Core::Refuse(Session* session, uint64_t client_id,
                  const absl::Status& status, Afterwards* after) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  *answer.mutable_error() = proto::ToWireError(status);
  if (client_id == 0) return Say(session, std::move(answer), after);
  Answer(session, std::move(answer), after);
}

void Core::Say(Session* session, v1::BrokerMessage message, Afterwards* after) {
  session->outbox->Push(std::move(message));
  after->Pump(*session);
}

// --- What the engine answers.

void Core::OnGranted(const quota::Granted& granted, Afterwards* after) {
  auto request = pending_.find(granted.request);
  // Answered in this very turn: nobody will ever release it.
  if (request == pending_.end())
    return Tell(quota::GrantFailed{granted.lease}, after);
  if (!KeepsItsWord(granted, &request->second, after)) return;
  request = pending_.find(granted.request);  // others may have been served
  auto lease = std::make_unique<Lease>();
  lease->id = granted.lease;
  lease->request = request->second;
  lease->tenant = granted.tenant;
  lease->bytes = granted.bytes;
  lease->since = deps_.clock->WallTime();
  lease->resident_since = deps_.clock->Now();
  lease->mappings.push_back({.session = lease->request.session});
  pending_.erase(request);
  Pool* pool = pools_.at(granted.pool).get();
  TakePlan plan = pool->slabs.Take(granted.tenant, granted.bytes);
  lease->slabs = std::move(plan.taken);
  Lease* made =
      leases_.emplace(granted.lease, std::move(lease)).first->second.get();
  sessions_.at(made->request.session)->leases.insert(made->id);
  if (plan.create_bytes.empty()) {
    Announce(made, after);
  } else {
    made->preparing = true;
    Give(pool,
         PrepareJob{made->id,
                    {std::move(plan.destroy), std::move(plan.create_bytes)}},
         after);
  }
  // The gate was turned on while it waited, or there is room by now.
  if (!made->request.soft) Soften(made, after);
}

// A lease that was asked for as soft needs a gate that is on, and room in the
// host pool; one may have been turned off, the other reserved by others, while
// it waited. Then it is hard, if that fits, or is asked for once more.
bool Core::KeepsItsWord(const quota::Granted& granted, PendingAcquire* request,
                        Afterwards* after) {
  if (!request->soft) return true;
  const bool takable = CanBeTaken(*sessions_.at(request->session),
                                  *pools_.at(request->pool), request->contents);
  if (takable &&
      (request->contents != v1::PRESERVE ||
       host_books_.Reserve(granted.tenant, granted.lease, granted.bytes)
               .outcome == HostBooks::Outcome::kReserved)) {
    return true;
  }
  request->soft = false;
  const quota::HardChanged hard{granted.lease, true};
  if (!engine_.Check(hard).has_value()) {
    Tell(hard, after);
    return true;
  }
  const PendingAcquire again = *request;
  Tell(quota::GrantFailed{granted.lease}, after);
  Ask(again, after);
  return false;
}

void Core::OnDenied(const quota::Denied& denied, Afterwards* after) {
  if (auto restore = restoring_.find(denied.request);
      restore != restoring_.end()) {
    const Returning returning = restore->second;
    restoring_.erase(restore);
    if (returning.for_attach.has_value())
      return OnAttachDenied(denied, *returning.for_attach, after);
    return OnRestoreDenied(denied, sessions_.at(returning.session), after);
  }
  auto it = pending_.find(denied.request);
  if (it == pending_.end()) return;
  const PendingAcquire request = it->second;
  pending_.erase(it);
  Session* session = sessions_.at(request.session);
  EndName(*session->tenant, request, after);
  v1::Event event = NewEvent("acquire_denied", session->tenant);
  event.set_session_id(session->id);
  event.set_device(pools_.at(request.pool)->uuid());
  event.set_bytes(request.bytes);
  event.set_message(std::string(quota::ReasonName(denied.reason)));
  deps_.events->Publish(std::move(event));
  Refuse(session, request.client_id, WhyDenied(denied, request), after);
}

absl::Status Core::WhyDenied(const quota::Denied& denied,
                             const PendingAcquire& request) const {
  const Pool& pool = *pools_.at(request.pool);
  if (pool.lost) return proto::MakeError(v1::DEVICE_LOST, pool.problem);
  return denied.reason == quota::Reason::kOvercommitted &&
                 WouldFitWithGate(request)
             ? GateFirst(denied, request.bytes)
             : DenialStatus(denied, request.bytes);
}

void Core::OnWaiting(const quota::Waiting& waiting, Afterwards* after) {
  auto it = pending_.find(waiting.request);
  if (it == pending_.end() || it->second.told_waiting) return;
  it->second.told_waiting = true;
  Session* session = sessions_.at(it->second.session);
  v1::BrokerMessage message = AnswerTo(it->second.client_id);
  message.mutable_waiting()->set_ahead(waiting.ahead);
  Say(session, std::move(message), after);
  v1::Event event = NewEvent("acquire_waiting", session->tenant);
  event.set_session_id(session->id);
  event.set_device(pools_.at(it->second.pool)->uuid());
  event.set_bytes(it->second.bytes);
  deps_.events->Publish(std::move(event));
}

void Core::OnBudgetChanged(const quota::BudgetChanged& changed,
                           Afterwards* after) {
  const Tenant* tenant = tenants_.Find(changed.tenant);
  if (tenant == nullptr) return;
  const Pool& pool = *pools_.at(changed.pool);
  for (const uint64_t id : tenant->sessions) {
    v1::BrokerMessage message;
    *message.mutable_budget_changed()->mutable_quota() =
        View(changed.tenant, pool);
    Say(sessions_.at(id), std::move(message), after);
  }
}

}  // namespace gmb::broker
