// Acquires: what clients ask, and what the quota engine answers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/machine/granularity.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "broker/machine/request_desk.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

absl::StatusOr<PendingAcquire> CheckAcquire(const State& state,
                                            const Session& session,
                                            uint64_t client_id,
                                            const v1::Acquire& acquire,
                                            quota::Instant now) {
  if (session.talk->pending.size() >= state.options.max_requests_per_session) {
    return TooManyRequests(state.options.max_requests_per_session);
  }
  if (absl::Status stays = CheckStays(state, *session.tenant); !stays.ok())
    return stays;
  const Pool* pool = state.FindPool(acquire.device());
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
  if (absl::Status name = state.shared_names->Check(*session.tenant, acquire);
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
  request.ahead_of_need = acquire.ahead_of_need();
  request.deadline = request.ahead_of_need
                         ? request.asked
                         : request.asked + SaneWait(acquire.wait());
  return request;
}

// A request that was judged as a hard one: whether it could be served, some
// time, as a soft one.
bool WouldFitSoft(const State& state, const PendingAcquire& request) {
  const Session& session = state.SessionAt(request.session);
  const Pool& pool = state.PoolAt(request.pool);
  if (session.gate == nullptr || !pool.CanMove(request.contents)) return false;
  if (request.contents == v1::PRESERVE &&
      !state.host_books->HasRoomFor(*session.tenant, request.bytes)) {
    return false;
  }
  const quota::PoolView view = *state.engine->Pool(pool.id);
  const quota::TenantPoolView held =
      *state.engine->TenantPool(*session.tenant, pool.id);
  return std::min(held.hard_bytes + request.bytes, held.limit_bytes) +
             view.missing_bytes <=
         view.target_bytes;
}

absl::Status WhyDenied(const State& state, const quota::Denied& denied,
                       const PendingAcquire& request) {
  const Pool& pool = state.PoolAt(request.pool);
  if (pool.device->lost)
    return proto::MakeError(v1::DEVICE_LOST, pool.device->problem);
  if (denied.reason == quota::Reason::kOvercommitted && !request.soft &&
      WouldFitSoft(state, request)) {
    const Session& session = state.SessionAt(request.session);
    if (!session.gate->on()) return GateFirst(denied, request.bytes);
    if (!HasSoftCredit(state, *session.tenant))
      return AnswersFirst(denied, request.bytes);
  }
  return DenialStatus(denied, request.bytes);
}

}  // namespace

void RequestDesk::Acquire(Session* session, uint64_t client_id,
                          const v1::Acquire& acquire, Turn& turn) {
  absl::StatusOr<PendingAcquire> request =
      CheckAcquire(state_, *session, client_id, acquire, turn.now());
  if (!request.ok())
    return sessions_.Refuse(session, client_id, request.status(), turn);
  request->id = quota_.NextRequest();
  Judge(&*request);
  if (!request->share_as.empty()) sharing_.TakeName(*session->tenant, *request);
  sessions_.Expect(session, client_id, request->id);
  Ask(state_.pending.Edit({})[request->id] = *request, turn);
}

void RequestDesk::Ask(const PendingAcquire& request, Turn& turn) {
  const Session& session = state_.SessionAt(request.session);
  const Pool& pool = state_.PoolAt(request.pool);
  const auto handles = static_cast<uint32_t>(
      std::min<uint64_t>(pool.slabs->HandlesFor(request.bytes), UINT32_MAX));
  quota_.Tell(
      quota::Acquire{request.id, quota::SessionId{session.id}, *session.tenant,
                     request.pool, request.bytes, handles, request.deadline,
                     /*hard=*/!request.soft},
      turn);
}

void RequestDesk::Cancel(Session* session, uint64_t client_id, Turn& turn) {
  if (state_.shared_names->WaitedFor(session->id, client_id) != nullptr) {
    return sharing_.GiveUpAttach(
        session, client_id,
        proto::MakeError(v1::CANCELLED_BY_CLIENT, "the request was withdrawn"),
        turn);
  }
  const auto it = session->talk->pending.find(client_id);
  if (it == session->talk->pending.end()) return;  // answered already
  if (state_.pending->contains(it->second.request)) {
    Withdraw(it->second.request, turn);
  } else {
    leases_.Cancel(it->second);
  }
}

void RequestDesk::WithdrawAll(Session* session, const absl::Status& why,
                              Turn& turn) {
  const std::vector<std::pair<uint64_t, PendingAnswer>> waiting(
      session->talk->pending.begin(), session->talk->pending.end());
  for (const auto& [client_id, unanswered] : waiting) {
    const quota::RequestId request = unanswered.request;
    const auto asked = state_.pending->find(request);
    if (asked == state_.pending->end()) continue;  // being made
    const PendingAcquire given_up = Forget(asked->first);
    quota_.Tell(quota::Cancel{request}, turn);
    sharing_.EndName(*session->tenant, given_up, turn);
    sessions_.Refuse(session, client_id, why, turn);
  }
}

void RequestDesk::ForgetSession(const Session& session, Turn& turn) {
  for (const auto& [client_id, unanswered] : session.talk->pending) {
    const auto pending = state_.pending->find(unanswered.request);
    if (pending == state_.pending->end()) continue;
    sharing_.EndName(*session.tenant, Forget(pending->first), turn);
  }
  quota_.Tell(quota::SessionClosed{quota::SessionId{session.id}}, turn);
}

void RequestDesk::OnGranted(const quota::Granted& granted, Turn& turn) {
  const auto found = state_.pending.Edit({}).find(granted.request);
  // Given up since the engine decided: nobody will ever release it.
  if (found == state_.pending->end())
    return quota_.Tell(quota::GrantFailed{granted.lease}, turn);
  if (!KeepsItsWord(granted, &found->second, turn)) return;
  const PendingAcquire request = found->second;
  state_.pending.Edit({}).erase(request.id);
  leases_.Make(granted, request, turn);
}

void RequestDesk::OnDenied(const quota::Denied& denied, Turn& turn) {
  auto it = state_.pending.Edit({}).find(denied.request);
  if (it == state_.pending->end()) return;
  if (IsSoftByNow(denied, it->second)) {
    it->second.soft = true;
    return Ask(PendingAcquire(it->second), turn);
  }
  const PendingAcquire request = Forget(it->first);
  Session* session = &state_.SessionAt(request.session);
  sharing_.EndName(*session->tenant, request, turn);
  if (!request.ahead_of_need) {
    v1::Event event = NewEvent(state_, "acquire_denied", session->tenant);
    event.set_session_id(session->id);
    event.set_device(state_.PoolAt(request.pool).uuid());
    event.set_bytes(request.bytes);
    event.set_message(std::string(quota::ReasonName(denied.reason)));
    turn.Publish(std::move(event));
  }
  sessions_.Refuse(session, request.client_id,
                   WhyDenied(state_, denied, request), turn);
}

void RequestDesk::OnWaiting(const quota::Waiting& waiting, Turn& turn) {
  auto it = state_.pending.Edit({}).find(waiting.request);
  if (it == state_.pending->end() || it->second.told_waiting) return;
  it->second.told_waiting = true;
  Session* session = &state_.SessionAt(it->second.session);
  v1::BrokerMessage message = AnswerTo(it->second.client_id);
  message.mutable_waiting()->set_ahead(waiting.ahead);
  sessions_.Say(session, std::move(message), turn);
  v1::Event event = NewEvent(state_, "acquire_waiting", session->tenant);
  event.set_session_id(session->id);
  event.set_device(state_.PoolAt(it->second.pool).uuid());
  event.set_bytes(it->second.bytes);
  turn.Publish(std::move(event));
}

}  // namespace gmb::broker
