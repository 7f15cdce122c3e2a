// What a client asks on its stream, and what the quota engine answers.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/granularity.h"
#include "broker/machine/machine.h"
#include "broker/machine/quota_view.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

v1::BrokerMessage AnswerTo(uint64_t client_id) {
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  return answer;
}

}  // namespace

void Machine::HandleMessage(uint64_t session_id,
                            const v1::ClientMessage& message, Turn& turn) {
  Session* session = state_.sessions.Find(session_id);
  if (session == nullptr) return;
  if (!HandleNotice(session, message, turn)) HandleOnce(session, message, turn);
}

// What is repeated on a new stream has no second effect.
void Machine::HandleOnce(Session* session, const v1::ClientMessage& message,
                         Turn& turn) {
  const uint64_t id = message.request_id();
  if (id == 0) {
    return Refuse(
        session, 0,
        proto::MakeError(v1::BAD_REQUEST, "a request needs an id above 0",
                         {.field = "request_id"}),
        turn);
  }
  if (std::optional<v1::BrokerMessage> answer = session->answers.Find(id))
    return Say(session, *std::move(answer), turn);
  const bool to_come =
      session->pending.contains(id) || session->restores.contains(id) ||
      state_.shared_names.WaitedFor(session->id, id) != nullptr;
  if (to_come) return;  // however long it has waited
  if (session->answers.IsForgotten(id)) {
    // Not logged as an answer: it must not push out one that still counts.
    v1::BrokerMessage too_old = AnswerTo(id);
    *too_old.mutable_error() = proto::ToWireError(proto::MakeError(
        v1::BAD_REQUEST, "the request id is too old: ids must rise",
        {.field = "request_id"}));
    return Say(session, std::move(too_old), turn);
  }
  HandleRequest(session, id, message, turn);
}

bool Machine::HandleNotice(Session* session, const v1::ClientMessage& message,
                           Turn& turn) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kMapped:
      MarkMapped(session, message.mapped(), turn);
      return true;
    case v1::ClientMessage::kCancel:
      Cancel(session, message.cancel(), turn);
      return true;
    case v1::ClientMessage::kUnmapped:
      OnUnmapped(session, message.unmapped(), turn);
      return true;
    case v1::ClientMessage::kSetTrimmable:
      SetTrimmable(session, message.set_trimmable());
      return true;
    case v1::ClientMessage::kTrimmed:
      OnTrimmed(session, message.trimmed(), turn);
      return true;
    default:
      return false;
  }
}

void Machine::HandleRequest(Session* session, uint64_t id,
                            const v1::ClientMessage& message, Turn& turn) {
  switch (message.kind_case()) {
    case v1::ClientMessage::kAcquire:
      return Acquire(session, id, message.acquire(), turn);
    case v1::ClientMessage::kRelease:
      return Release(session, id, message.release(), turn);
    case v1::ClientMessage::kGetQuota:
      return ReportQuota(session, id, turn);
    case v1::ClientMessage::kSetGate:
      return SetGate(session, id, message.set_gate(), turn);
    case v1::ClientMessage::kRestore:
      return Restore(session, id, message.restore(), turn);
    case v1::ClientMessage::kSeal:
      return Seal(session, id, message.seal().lease_id(), turn);
    case v1::ClientMessage::kAttach:
      return Attach(session, id, message.attach(), turn);
    case v1::ClientMessage::kDrop:
      return Drop(session, id, message.drop().name(), turn);
    default:
      return Refuse(
          session, id,
          proto::MakeError(v1::BAD_REQUEST,
                           "the message asks for nothing this broker knows",
                           {.field = "kind"}),
          turn);
  }
}

absl::StatusOr<PendingAcquire> Machine::CheckAcquire(const Session& session,
                                                     uint64_t client_id,
                                                     const v1::Acquire& acquire,
                                                     quota::Instant now) const {
  if (session.pending.size() >= state_.options.max_requests_per_session) {
    return TooManyRequests(state_.options.max_requests_per_session);
  }
  if (absl::Status stays = CheckStays(*session.tenant); !stays.ok())
    return stays;
  const Pool* pool = state_.FindPool(acquire.device());
  if (pool == nullptr) return NoSuchDevice(acquire.device());
  if (!v1::Contents_IsValid(acquire.contents())) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "contents is PRESERVE, DISCARD or RESIDENT",
                            {.field = "contents"});
  }
  const uint64_t bytes = RoundUp(acquire.bytes(), pool->info.granularity_bytes);
  if (bytes == 0 || bytes > quota::kMaxPoolBytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a lease has at least 1 byte and at most 64 TiB: bytes=",
                     acquire.bytes()),
        {.field = "bytes"});
  }
  if (absl::Status name = state_.shared_names.Check(*session.tenant, acquire);
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
  request.asked = now;
  request.deadline = request.asked + SaneWait(acquire.wait());
  return request;
}

void Machine::Acquire(Session* session, uint64_t client_id,
                      const v1::Acquire& acquire, Turn& turn) {
  absl::StatusOr<PendingAcquire> request =
      CheckAcquire(*session, client_id, acquire, turn.now());
  if (!request.ok()) return Refuse(session, client_id, request.status(), turn);
  request->id = quota::RequestId{state_.next_request++};
  request->soft =
      CanBeTaken(*session, state_.PoolAt(request->pool), request->contents) &&
      HasSoftCredit(*session->tenant) &&
      (request->contents == v1::DISCARD ||
       state_.host_books.HasRoomFor(*session->tenant, request->bytes));
  if (!request->share_as.empty())
    state_.shared_names.Take(*session->tenant, *request);
  session->pending[client_id] = request->id;
  Ask(state_.pending[request->id] = *request, turn);
}

void Machine::Ask(const PendingAcquire& request, Turn& turn) {
  const Session& session = state_.SessionAt(request.session);
  const Pool& pool = state_.PoolAt(request.pool);
  const auto handles = static_cast<uint32_t>(
      std::min<uint64_t>(pool.slabs.HandlesFor(request.bytes), UINT32_MAX));
  Tell(quota::Acquire{request.id, quota::SessionId{session.id}, *session.tenant,
                      request.pool, request.bytes, handles, request.deadline,
                      /*hard=*/!request.soft},
       turn);
}

void Machine::Cancel(Session* session, const v1::Cancel& cancel, Turn& turn) {
  const uint64_t client_id = cancel.acquire_request_id();
  if (state_.shared_names.WaitedFor(session->id, client_id) != nullptr)
    return GiveUpAttach(
        session, client_id,
        proto::MakeError(v1::CANCELLED_BY_CLIENT, "the request was withdrawn"),
        turn);
  auto it = session->pending.find(client_id);
  if (it == session->pending.end()) return;  // answered already
  if (state_.pending.contains(it->second))
    return Tell(quota::Cancel{it->second}, turn);
  // Granted, and being made: it is answered with the grant, or as withdrawn if
  // that fails.
  for (const quota::LeaseId id : session->leases) {
    Lease& lease = state_.LeaseAt(id);
    if (lease.request.id == it->second) lease.request.cancelled = true;
  }
}

Lease* Machine::FindLease(const Session& session, uint64_t lease) {
  const quota::LeaseId id{lease};
  return session.leases.contains(id) ? &state_.LeaseAt(id) : nullptr;
}

void Machine::MarkMapped(Session* session, const v1::Mapped& mapped,
                         Turn& turn) {
  if (mapped.move() != 0) return OnMapped(session, mapped, turn);
  Lease* lease = FindLease(*session, mapped.lease_id());
  if (lease != nullptr && lease->state == v1::LeaseInfo::GRANTED) {
    lease->state = v1::LeaseInfo::MAPPED;
  }
}

void Machine::Release(Session* session, uint64_t client_id,
                      const v1::Release& release, Turn& turn) {
  Lease* lease = FindLease(*session, release.lease_id());
  // A lease that was not announced yet does not exist for the client.
  if (lease == nullptr || lease->state == v1::LeaseInfo::CREATING) {
    return Refuse(session, client_id, NoSuchLease(release.lease_id()), turn);
  }
  session->leases.erase(lease->id);
  CountTrimmed(session, *lease);
  v1::BrokerMessage answer = AnswerTo(client_id);
  answer.mutable_released()->set_lease_id(release.lease_id());
  Answer(session, std::move(answer), turn);
  if (lease->shared) {
    Detach(session, lease, /*reuse=*/true, turn);
  } else {
    EndLease(lease->id, /*reuse=*/true, turn);
  }
  // Other users may have waited for the end of this one's use of it, or of the
  // pause that ends with it.
  turn.Queue(LeaseLeft{session->id, quota::LeaseId{release.lease_id()}});
}

void Machine::ReportQuota(Session* session, uint64_t client_id, Turn& turn) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  v1::QuotaReport* report = answer.mutable_quota_report();
  report->set_tenant(state_.TenantAt(*session->tenant).policy.name);
  for (const auto& [id, pool] : state_.pools)
    *report->add_quotas() = View(state_, *session->tenant, *pool);
  Answer(session, std::move(answer), turn);
}

void Machine::Answer(Session* session, v1::BrokerMessage answer, Turn& turn) {
  session->pending.erase(answer.request_id());
  session->answers.Add(answer);
  Say(session, std::move(answer), turn);
}

void Machine::Refuse(Session* session, uint64_t client_id,
                     const absl::Status& status, Turn& turn) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  *answer.mutable_error() = proto::ToWireError(status);
  if (client_id == 0) return Say(session, std::move(answer), turn);
  Answer(session, std::move(answer), turn);
}

void Machine::Say(Session* session, v1::BrokerMessage message, Turn& turn) {
  turn.Add(broker::Say{session->id, std::move(message)});
}

// --- What the engine answers.

void Machine::OnGranted(const quota::Granted& granted, Turn& turn) {
  auto request = state_.pending.find(granted.request);
  // Given up since the engine decided: nobody will ever release it.
  if (request == state_.pending.end())
    return Tell(quota::GrantFailed{granted.lease}, turn);
  if (!KeepsItsWord(granted, &request->second, turn)) return;
  auto lease = std::make_unique<Lease>();
  lease->id = granted.lease;
  lease->request = request->second;
  lease->tenant = granted.tenant;
  lease->bytes = granted.bytes;
  lease->since = turn.wall();
  lease->resident_since = turn.now();
  lease->mappings.push_back({.session = lease->request.session});
  state_.pending.erase(request);
  Pool* pool = &state_.PoolAt(granted.pool);
  TakePlan plan = pool->slabs.Take(granted.tenant, granted.bytes);
  lease->slabs = std::move(plan.taken);
  Lease* made = state_.leases.emplace(granted.lease, std::move(lease))
                    .first->second.get();
  state_.SessionAt(made->request.session).leases.insert(made->id);
  state_.reclaim.Touch(state_, *made);
  if (plan.create_bytes.empty()) {
    Announce(made, turn);
  } else {
    made->preparing = true;
    Give(pool,
         PrepareJob{made->id,
                    {std::move(plan.destroy), std::move(plan.create_bytes)}},
         turn);
  }
  // The gate was turned on while it waited, or there is room by now.
  if (!made->request.soft) Soften(made, turn);
}

// A lease that was asked for as soft needs a gate that is on, a tenant that owes
// no answer, and room in the host pool; that may have changed while it waited.
// Then it is hard, if that fits, or is asked for once more.
bool Machine::KeepsItsWord(const quota::Granted& granted,
                           PendingAcquire* request, Turn& turn) {
  if (!request->soft) return true;
  const bool takable =
      CanBeTaken(state_.SessionAt(request->session),
                 state_.PoolAt(request->pool), request->contents) &&
      HasSoftCredit(granted.tenant);
  if (takable &&
      (request->contents != v1::PRESERVE ||
       state_.host_books.Reserve(granted.tenant, granted.lease, granted.bytes)
               .outcome == HostBooks::Outcome::kReserved)) {
    return true;
  }
  request->soft = false;
  if (!TryToTell(quota::HardChanged{granted.lease, true}, turn).has_value())
    return true;
  const PendingAcquire again = *request;
  Tell(quota::GrantFailed{granted.lease}, turn);
  Ask(again, turn);
  return false;
}

void Machine::OnDenied(const quota::Denied& denied, Turn& turn) {
  if (auto restore = state_.restoring.find(denied.request);
      restore != state_.restoring.end()) {
    const Returning returning = restore->second;
    state_.restoring.erase(restore);
    if (returning.for_attach.has_value())
      return OnAttachDenied(denied, *returning.for_attach, turn);
    return OnRestoreDenied(denied, &state_.SessionAt(returning.session), turn);
  }
  auto it = state_.pending.find(denied.request);
  if (it == state_.pending.end()) return;
  const PendingAcquire request = it->second;
  state_.pending.erase(it);
  Session* session = &state_.SessionAt(request.session);
  EndName(*session->tenant, request, turn);
  v1::Event event = NewEvent("acquire_denied", session->tenant);
  event.set_session_id(session->id);
  event.set_device(state_.PoolAt(request.pool).uuid());
  event.set_bytes(request.bytes);
  event.set_message(std::string(quota::ReasonName(denied.reason)));
  turn.Publish(std::move(event));
  Refuse(session, request.client_id, WhyDenied(denied, request), turn);
}

absl::Status Machine::WhyDenied(const quota::Denied& denied,
                                const PendingAcquire& request) const {
  const Pool& pool = state_.PoolAt(request.pool);
  if (pool.lost) return proto::MakeError(v1::DEVICE_LOST, pool.problem);
  if (denied.reason == quota::Reason::kOvercommitted && !request.soft &&
      WouldFitSoft(request)) {
    const Session& session = state_.SessionAt(request.session);
    if (!session.gate->on()) return GateFirst(denied, request.bytes);
    if (!HasSoftCredit(*session.tenant))
      return AnswersFirst(denied, request.bytes);
  }
  return DenialStatus(denied, request.bytes);
}

void Machine::OnWaiting(const quota::Waiting& waiting, Turn& turn) {
  auto it = state_.pending.find(waiting.request);
  if (it == state_.pending.end() || it->second.told_waiting) return;
  it->second.told_waiting = true;
  Session* session = &state_.SessionAt(it->second.session);
  v1::BrokerMessage message = AnswerTo(it->second.client_id);
  message.mutable_waiting()->set_ahead(waiting.ahead);
  Say(session, std::move(message), turn);
  v1::Event event = NewEvent("acquire_waiting", session->tenant);
  event.set_session_id(session->id);
  event.set_device(state_.PoolAt(it->second.pool).uuid());
  event.set_bytes(it->second.bytes);
  turn.Publish(std::move(event));
}

void Machine::OnBudgetChanged(const quota::BudgetChanged& changed, Turn& turn) {
  const Tenant* tenant = state_.tenants.Find(changed.tenant);
  if (tenant == nullptr) return;
  const Pool& pool = state_.PoolAt(changed.pool);
  for (const uint64_t id : tenant->sessions) {
    v1::BrokerMessage message;
    *message.mutable_budget_changed()->mutable_quota() =
        View(state_, changed.tenant, pool);
    Say(&state_.SessionAt(id), std::move(message), turn);
  }
}

}  // namespace gmb::broker
