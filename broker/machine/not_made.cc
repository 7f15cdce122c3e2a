// Acquires that were granted, and whose slabs could not be made: asked for once
// more, put off, or refused.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/machine/attempts.h"
#include "broker/machine/request_desk.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Those that are put off are asked for some at a time: each costs the device a
// step, which serves the others in its turn.
constexpr int kMostAskedAtOnce = 4;
constexpr quota::Nanoseconds kBetweenAsking = std::chrono::milliseconds(25);

bool IsBeingPaused(const Session& session) {
  return session.gate != nullptr && session.gate->pausing_until().has_value();
}

absl::string_view WhyNoMemory(const Pool& pool) {
  return pool.device->reading.destroyed_is_kept
             ? "the broker's keeper does not answer, and still has memory that "
               "was given back: slabs of this size can be made when it goes "
               "on, or has ended"
             : "the device has less memory than its pool: something outside "
               "the broker took it";
}

}  // namespace

// The engine decides again, now that it knows what is missing; what a client
// says it has unmapped and has not is found out slab by slab.
void RequestDesk::OnNotMade(const NotMade& failed, Turn& turn) {
  quota_.Tell(quota::GrantFailed{failed.lease}, turn);
  PendingAcquire request = failed.request;
  // It ended while its slabs were being made; its leases still come back.
  if (state_.ended_sessions->contains(request.session)) {
    const Session& ended = state_.SessionAt(request.session);
    return sharing_.EndName(*ended.tenant, request, turn);
  }
  const Pool& pool = state_.PoolAt(request.pool);
  const bool no_memory = absl::IsResourceExhausted(failed.status);
  const bool in_time = turn.now() < request.deadline;
  const bool is_kept = pool.device->reading.destroyed_is_kept;
  const bool unreturned =
      pool.device->missing_bytes == 0 && !is_kept && in_time;
  Session* session = &state_.SessionAt(request.session);
  if (!failed.given_up.ok()) {
    sharing_.EndName(*session->tenant, request, turn);
    return sessions_.Refuse(session, request.client_id, failed.given_up, turn);
  }
  // A pause would wait for it.
  if (no_memory && is_kept && in_time && !IsBeingPaused(*session))
    return PutOff(std::move(request), turn);
  ++request.attempts;
  if (no_memory && MayTryAgain(request.attempts, unreturned)) {
    Judge(&request);
    state_.pending.Edit({})[request.id] = request;
    return Ask(request, turn);
  }
  sharing_.EndName(*session->tenant, request, turn);
  sessions_.Refuse(
      session, request.client_id,
      no_memory
          ? proto::MakeError(v1::POOL_EXHAUSTED,
                             absl::StrCat(WhyNoMemory(pool),
                                          "; try again: bytes=", request.bytes),
                             {.retry_after = absl::Milliseconds(500)})
          : proto::MakeError(
                pool.device->lost ? v1::DEVICE_LOST : v1::DEVICE_ERROR,
                absl::StrCat("the device could not make the slabs: ",
                             failed.status.message())),
      turn);
}

void RequestDesk::PutOff(PendingAcquire request, Turn& turn) {
  const quota::Instant at =
      std::min(turn.now() + PutOffFor(request.put_offs++), request.deadline);
  request.ask_again_at = at;
  state_.put_off.Edit({}).Add(request,
                              *state_.SessionAt(request.session).tenant);
  const quota::RequestId id = request.id;
  state_.pending.Edit({})[id] = std::move(request);
  OnWaiting({.request = id, .ahead = 0}, turn);
}

void RequestDesk::AskPutOff(Turn& turn) {
  if (turn.now() < *state_.put_off_at) return;
  for (int asked = 0;
       !state_.put_off->empty() && state_.put_off->first().first <= turn.now();
       ++asked) {
    if (asked == kMostAskedAtOnce) {
      state_.put_off_at.Edit({}) = turn.now() + kBetweenAsking;
      return;
    }
    PendingAcquire request = Forget(state_.put_off->first().second);
    request.ask_again_at = std::nullopt;
    Judge(&request);
    Ask(state_.pending.Edit({})[request.id] = request, turn);
  }
}

PendingAcquire RequestDesk::Forget(quota::RequestId id) {
  auto& pending = state_.pending.Edit({});
  const auto found = pending.find(id);
  PendingAcquire request = std::move(found->second);
  pending.erase(found);
  if (request.ask_again_at.has_value()) state_.put_off.Edit({}).Remove(request);
  return request;
}

void RequestDesk::Withdraw(quota::RequestId id, Turn& turn) {
  const auto found = state_.pending->find(id);
  if (found == state_.pending->end()) return;  // answered
  if (!found->second.ask_again_at.has_value())
    return quota_.Tell(quota::Cancel{id}, turn);
  OnDenied({.request = id, .reason = quota::Reason::kCancelled}, turn);
}

}  // namespace gmb::broker
