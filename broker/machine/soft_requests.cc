// Acquires: which are for soft bytes, from when they come until they are granted.
#include <chrono>

#include "broker/machine/request_desk.h"

namespace gmb::broker {
namespace {

// Of those that wait as hard ones, in one turn; how long until the next are.
constexpr int kMostJudgedAtOnce = 64;
constexpr quota::Nanoseconds kBetweenJudging = std::chrono::milliseconds(1);

// Whether a lease of that request could be taken by force, as things stand.
bool MayBeSoft(const State& state, const PendingAcquire& request) {
  const Session& session = state.SessionAt(request.session);
  return CanBeTaken(state, session, state.PoolAt(request.pool),
                    request.contents) &&
         HasSoftCredit(state, *session.tenant) &&
         (request.contents == v1::DISCARD ||
          state.host_books->HasRoomFor(*session.tenant, request.bytes));
}

}  // namespace

void RequestDesk::Judge(PendingAcquire* request) const {
  request->soft = request->soft || MayBeSoft(state_, *request);
}

bool RequestDesk::Soften(quota::RequestId id, Turn& turn) {
  const auto asked = state_.pending->find(id);
  if (asked == state_.pending->end()) return true;  // being made
  const PendingAcquire& request = asked->second;
  // The engine may have decided on it just now. One that is put off is judged
  // anew when it is asked for, and one whose time is over before it is refused.
  if (request.soft || !state_.engine->IsWaiting(id)) return true;
  if (request.deadline <= turn.now()) return true;
  if (!MayBeSoft(state_, request)) return true;
  state_.pending.Edit({}).at(id).soft = true;
  quota_.Tell(quota::Softened{id}, turn);
  return state_.engine->IsWaiting(id);
}

void RequestDesk::OnLendsAgain(const LendsAgain& lends, Turn& turn) {
  int left = kMostJudgedAtOnce;
  for (const uint64_t id : lends.sessions) {
    const Session* session = state_.sessions->Find(id);
    if (session == nullptr || session->talk->ended) continue;
    left -= static_cast<int>(session->talk->pending.size());
    // There are too many for one turn: those of others are looked at as well.
    if (left < 0) return state_.room_look.Edit({}).Begin();
    for (const auto& [client_id, unanswered] : session->talk->pending) {
      if (!Soften(unanswered.request, turn))
        return state_.room_look.Edit({}).Begin();
    }
  }
}

void RequestDesk::SoftenSome(Turn& turn) {
  RoomLook& look = state_.room_look.Edit({});
  look.Notice(state_.host_books->gains());
  if (!look.under_way() || turn.now() < look.not_before()) return;
  for (int judged = 0; judged < kMostJudgedAtOnce; ++judged) {
    const auto next = look.Next(*state_.pending);
    if (!next.has_value()) return;
    look.Postpone(turn.now() + kBetweenJudging);
    if (!Soften(*next, turn)) return look.Postpone(turn.now());
  }
}

// A lease that was asked for as soft needs a gate that is on, a tenant that
// owes no answer, and room in the host pool; that may have changed while it
// waited. Then it is hard, if that fits, or is asked for once more.
bool RequestDesk::KeepsItsWord(const quota::Granted& granted,
                               PendingAcquire* request, Turn& turn) {
  if (!request->soft) return true;
  const bool takable =
      CanBeTaken(state_, state_.SessionAt(request->session),
                 state_.PoolAt(request->pool), request->contents) &&
      HasSoftCredit(state_, granted.tenant);
  if (takable && host_.ReserveRoomFor(granted.tenant, granted.lease, *request,
                                      granted.bytes)) {
    return true;
  }
  request->soft = false;
  if (!quota_.TryToTell(quota::HardChanged{granted.lease, true}, turn)
           .has_value())
    return true;
  const PendingAcquire again = *request;
  quota_.Tell(quota::GrantFailed{granted.lease}, turn);
  Ask(again, turn);
  return false;
}

// A request that was judged as a hard one while it waited, and would be a soft
// one if it were made now: it is judged as such before it is refused.
bool RequestDesk::IsSoftByNow(const quota::Denied& denied,
                              const PendingAcquire& request) const {
  const bool lacks_bytes = denied.reason == quota::Reason::kPoolExhausted ||
                           denied.reason == quota::Reason::kOvercommitted;
  return lacks_bytes && !denied.pausing && !request.soft &&
         MayBeSoft(state_, request);
}

}  // namespace gmb::broker
