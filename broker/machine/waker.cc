// Sessions that wait for their memory: all of a session's, or of its group's,
// comes back before its gate is opened.
#include "broker/machine/waker.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "broker/machine/away.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"
#include "quota/reason.h"

namespace gmb::broker {
namespace {

// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostEndedAtOnce = 64;

// For a scope to hear that it may go in, and to do so.
constexpr quota::Nanoseconds kLetIn = std::chrono::seconds(1);

// In whose name the engine is asked: the member that waits the longest. It
// denies a session that is being paused at once, and one whose wait is over:
// while one is paused, such a one is not asked for. Null: nobody.
Session* AskerOf(const State& state, const std::vector<Session*>& members,
                 quota::Instant now) {
  Session* asking = nullptr;
  quota::Instant deadline;
  bool paused = false;
  for (Session* member : members) {
    if (state.pausing->contains(member->id)) {
      paused = true;
      continue;
    }
    for (const auto& [id, until] : member->waking->restores) {
      if (asking != nullptr && until <= deadline) continue;
      asking = member;
      deadline = until;
    }
  }
  return paused && asking != nullptr && deadline <= now ? nullptr : asking;
}

// Since when a Restore that comes now has waited.
quota::Instant WaitsSince(const SessionWaking& waking, quota::Instant now) {
  const bool goes_on =
      !waking.restores.empty() || now <= waking.lapsed_at + kAskedAgainWithin;
  return goes_on ? waking.waits_since.value_or(now) : now;
}

// Whether a Restore of the session, or of its group, has time left.
bool WaitsOn(const State& state, Session* session, const Turn& turn) {
  for (const Session* member : MembersOf(state, session)) {
    for (const auto& [id, until] : member->waking->restores) {
      if (until > turn.now()) return true;
    }
  }
  return false;
}

}  // namespace

void Waker::Restore(Session* session, uint64_t client_id,
                    const v1::Restore& restore, Turn& turn) {
  if (session->gate == nullptr) {
    return sessions_.Refuse(
        session, client_id,
        proto::MakeError(v1::BAD_STATE, "this session has no gate"), turn);
  }
  if (session->waking->restores.size() >=
      state_.options.max_requests_per_session) {
    return sessions_.Refuse(
        session, client_id,
        TooManyRequests(state_.options.max_requests_per_session), turn);
  }
  const quota::Instant until = turn.now() + SaneWait(restore.wait());
  SessionWaking& waking = session->waking.Edit({});
  waking.waits_since = WaitsSince(waking, turn.now());
  waking.restores.emplace(client_id, until);
  state_.restore_times.Edit({}).emplace(until, session->id, client_id);
  state_.waking.Edit({}).insert(session->id);
  // The engine's request, if there is one, is for this one as well.
  for (const Session* member : MembersOf(state_, session)) {
    if (const auto& asked = member->waking->restoring; asked.has_value())
      recalls_.AskOn(*asked, until, turn);
  }
  AdvanceRestore(session, turn);
}

// The next step towards gates that are open, if there is one: everything that
// ends a step of a session's leases comes here.
void Waker::AdvanceRestore(Session* session, Turn& turn) {
  if (session->gate == nullptr) return;
  const std::vector<Session*> members = MembersOf(state_, session);
  const auto any = [&](auto holds) {
    return std::any_of(members.begin(), members.end(), holds);
  };
  if (any([](const Session* m) { return m->waking->restoring.has_value(); }))
    return;
  if (!any([](const Session* m) { return m->gate->closed(); })) {
    if (!any([](const Session* m) {
          return m->gate->pausing_until().has_value();
        })) {
      AnswerMembers(session, absl::OkStatus(), turn);
    }
    return;
  }
  if (AnyMoves(members, turn)) return;
  Away away = AwayOf(state_, members);
  state_.away_looks.Edit({}) += away.looks;
  turn.Spend(*session->tenant, away.looks);
  if (away.moving) return;
  if (away.evicted.empty() && away.unready.empty() && !away.asked_back) {
    for (Session* member : members) Reopen(member, turn);
    return;
  }
  if (!any([](const Session* m) { return !m->waking->restores.empty(); }))
    return;
  // A step that could not even begin is answered to all of them.
  bool began = true;
  for (const auto& [lease, user] : away.unready)
    began &= mover_.MakeReady(lease, user, turn);
  if (began && !away.evicted.empty())
    AskForRestore(members, std::move(away.evicted), turn);
}

// A look is at all leases of a group, which may be many.
void Waker::AdvanceRestores(const std::vector<uint64_t>& sessions, Turn& turn) {
  absl::flat_hash_set<uint64_t> seen;
  for (const uint64_t id : sessions) {
    Session* session = state_.sessions->Find(id);
    if (session == nullptr || !seen.insert(id).second) continue;
    for (const Session* member : MembersOf(state_, session))
      seen.insert(member->id);
    AdvanceRestore(session, turn);
  }
}

// Each move of a lease ends here, and mostly others of the session's leases
// still move: the first of them among all that move of its tenant says so. No
// more of these are looked at than the sessions have leases.
bool Waker::AnyMoves(const std::vector<Session*>& members, Turn& turn) {
  size_t leases = 0;
  for (const Session* member : members) leases += member->leases->size();
  const quota::TenantId tenant = *members.front()->tenant;
  uint64_t& looks = state_.away_looks.Edit({});
  auto it = state_.moving->lower_bound({tenant, quota::LeaseId{}});
  for (; leases > 0 && it != state_.moving->end() && it->first == tenant;
       ++it, --leases) {
    ++looks;
    turn.Spend(tenant, 1);
    if (MovesFor(state_.LeaseAt(it->second), members)) return true;
  }
  return false;
}

void Waker::AskForRestore(const std::vector<Session*>& members,
                          std::vector<quota::LeaseId> evicted, Turn& turn) {
  Session* const asking = AskerOf(state_, members, turn.now());
  if (asking == nullptr) return;
  quota::Instant deadline;
  for (const auto& [id, until] : asking->waking->restores)
    deadline = std::max(deadline, until);
  for (Session* member : members) ++member->waking.Edit({}).restore_attempts;
  asking->waking.Edit({}).restoring = recalls_.AskBack(
      asking->id, std::move(evicted), deadline, std::nullopt, turn);
}

void Waker::Reopen(Session* session, Turn& turn) {
  if (!gates_.Reopen(session)) {
    return AnswerRestores(
        session,
        proto::MakeError(v1::BAD_STATE,
                         "the gate's word was written over while it was "
                         "closed: this process breaks the gate's rules"),
        turn);
  }
  session->waking.Edit({}).coming_until = {};
  session->waking.Edit({}).let_in_until = turn.now() + kLetIn;
  AnswerRestores(session, absl::OkStatus(), turn);
}

void Waker::AnswerRestores(Session* session, const absl::Status& status,
                           Turn& turn) {
  std::map<uint64_t, quota::Instant> waiting;
  waiting.swap(session->waking.Edit({}).restores);
  session->waking.Edit({}).waits_since.reset();
  session->waking.Edit({}).restore_attempts = 0;
  state_.waking.Edit({}).erase(session->id);
  for (const auto& [client_id, until] : waiting)
    state_.restore_times.Edit({}).erase({until, session->id, client_id});
  for (const auto& [client_id, until] : waiting) {
    if (!status.ok()) {
      sessions_.Refuse(session, client_id, status, turn);
      continue;
    }
    v1::BrokerMessage answer;
    answer.set_request_id(client_id);
    answer.mutable_restored();
    sessions_.Answer(session, std::move(answer), turn);
  }
}

void Waker::AnswerMembers(Session* session, const absl::Status& status,
                          Turn& turn) {
  for (Session* member : MembersOf(state_, session))
    AnswerRestores(member, status, turn);
}

void Waker::OnDenied(const quota::Denied& denied, Turn& turn) {
  const std::optional<Returning> returning = recalls_.End(denied.request);
  if (!returning.has_value()) return;
  if (returning->for_attach.has_value()) {
    sharing_.OnAttachDenied(denied, *returning->for_attach, turn);
    return AdvanceOthers(denied.request, {}, turn);
  }
  OnRestoreDenied(denied, &state_.SessionAt(returning->session), turn);
}

// Denied: of the engine's request; each of the client's has its own deadline.
// Its own are answered before others ask for the same leases: a denial that is
// told at once would go round between them for ever.
void Waker::OnRestoreDenied(const quota::Denied& denied, Session* session,
                            Turn& turn) {
  session->waking.Edit({}).restoring.reset();
  // A refusal that time cannot help has no hint.
  const bool in_time = denied.reason == quota::Reason::kPoolExhausted ||
                       denied.retry_after > quota::Nanoseconds(0);
  // One that came back in part, of which a lease has failed (LeaseMover). That
  // lease's end, which is told next, has it ask anew, or answers it.
  const bool withdrawn = denied.reason == quota::Reason::kCancelled;
  const bool waits_on = denied.pausing || withdrawn ||
                        (in_time && WaitsOn(state_, session, turn));
  if (!waits_on) {
    uint64_t bytes = 0;
    const Away away = AwayOf(state_, MembersOf(state_, session));
    turn.Spend(*session->tenant, away.looks);
    for (const quota::LeaseId id : away.evicted)
      bytes += state_.LeaseAt(id).bytes;
    v1::Event event = NewEvent(state_, "restore_failed", session->tenant);
    event.set_session_id(session->id);
    event.set_bytes(bytes);
    event.set_message(std::string(quota::ReasonName(denied.reason)));
    turn.Publish(std::move(event));
    AnswerMembers(session, DenialStatus(denied, bytes), turn);
  }
  AdvanceOthers(denied.request, MembersOf(state_, session), turn);
  // The end of a pause comes back to it; so does its deadline.
  if (!waits_on || withdrawn) return;
  // No attempt has failed where its time is over, or another's pause began.
  for (Session* member : MembersOf(state_, session))
    member->waking.Edit({}).restore_attempts = 0;
  AdvanceRestore(session, turn);
}

// That a Restore's own deadline is over. The last one is told what is lacking.
absl::Status Waker::TooLate(Session* session) const {
  constexpr auto kAgain = std::chrono::milliseconds(100);
  for (const Session* member : MembersOf(state_, session)) {
    const auto& asked = member->waking->restoring;
    if (!session->waking->restores.empty() || !asked.has_value() ||
        !state_.engine->IsWaiting(*asked)) {
      continue;
    }
    auto [denied, bytes] = state_.engine->DenialOf(*asked);
    denied.retry_after = kAgain;  // it may keep its place for a while
    return DenialStatus(denied, bytes);
  }
  return proto::MakeError(v1::POOL_EXHAUSTED,
                          "the session's memory was not back in time: wait "
                          "longer",
                          {.retry_after = absl::FromChrono(kAgain)});
}

// Restores whose own deadline is over: the engine's lingers, their leases may
// still be on their way out, their pause may last, or another of the group waits
// longer.
void Waker::ExpireRestores(Turn& turn) {
  const quota::Instant now = turn.now();
  for (int i = 0; i < kMostEndedAtOnce && !state_.restore_times->empty(); ++i) {
    const auto [until, id, client_id] = *state_.restore_times->begin();
    if (until > now) return;
    state_.restore_times.Edit({}).erase(state_.restore_times->begin());
    Session* session = &state_.SessionAt(id);
    session->waking.Edit({}).restores.erase(client_id);
    session->waking.Edit({}).lapsed_at = now;
    sessions_.Refuse(session, client_id, TooLate(session), turn);
    if (session->waking->restores.empty()) state_.waking.Edit({}).erase(id);
  }
}

void Waker::AdvanceUsersOf(absl::Span<const quota::LeaseId> leases,
                           Turn& turn) {
  std::vector<uint64_t> users;
  for (const quota::LeaseId id : leases) {
    const auto lease = state_.leases->find(id);
    if (lease == state_.leases->end()) continue;
    for (const Mapping& mapping : lease->second->move->mappings)
      users.push_back(mapping.session);
  }
  AdvanceRestores(users, turn);
  for (const quota::LeaseId id : leases) {
    const auto still = state_.leases->find(id);
    if (still != state_.leases->end())
      sharing_.ServeAttaches(still->second.get(), turn);
  }
}

// A Restore that shared leases were named in has come to nothing: who else
// needs them asks for himself.
void Waker::AdvanceOthers(quota::RequestId request,
                          const std::vector<Session*>& but_for, Turn& turn) {
  absl::flat_hash_set<uint64_t> not_these;
  for (const Session* session : but_for) not_these.insert(session->id);
  std::vector<quota::LeaseId> freed;
  std::vector<uint64_t> others;
  for (const quota::LeaseId id : state_.asked_back->By(request)) {
    const auto found = state_.leases->find(id);
    if (found == state_.leases->end() ||
        *found->second->asked_back != request) {
      continue;
    }
    recalls_.Forget(found->second.get());
    freed.push_back(id);
    for (const Mapping& mapping : found->second->move->mappings) {
      if (!not_these.contains(mapping.session))
        others.push_back(mapping.session);
    }
  }
  AdvanceRestores(others, turn);
  for (const quota::LeaseId id : freed) {
    const auto still = state_.leases->find(id);
    if (still != state_.leases->end())
      sharing_.ServeAttaches(still->second.get(), turn);
  }
}

void Waker::OnMoveFailed(const MoveFailed& failed, Turn& turn) {
  if (failed.session.has_value()) {
    if (Session* session = state_.sessions->Find(*failed.session))
      AnswerMembers(session, failed.why, turn);
    return;
  }
  const auto lease = state_.leases->find(failed.lease);
  if (lease == state_.leases->end()) return;
  for (Session* user : UsersOf(state_, *lease->second))
    AnswerRestores(user, failed.why, turn);
  sharing_.RefuseWaiting(*lease->second, failed.why, turn);
}

void Waker::OnLeaseLeft(const LeaseLeft& left, Turn& turn) {
  AdvanceUsersOf({&left.lease, 1}, turn);
  Session* session = state_.sessions->Find(left.session);
  if (session == nullptr) return;
  // A shared one is still asked for in its name, or in that of another of its
  // group: they need the rest alone.
  const auto lease = state_.leases->find(left.lease);
  const std::vector<Session*> members = MembersOf(state_, session);
  const auto asks_for_it = [&](const Session* member) {
    return member->waking->restoring.has_value() &&
           *lease->second->asked_back == member->waking->restoring;
  };
  if (lease != state_.leases->end() &&
      std::any_of(members.begin(), members.end(), asks_for_it)) {
    CancelFor(members, turn);
  }
  // It may have been the last one away.
  AdvanceRestore(session, turn);
}

void Waker::OnSessionEnded(const SessionEnded& ended, Turn& turn) {
  if (ended.restoring.has_value()) AdvanceOthers(*ended.restoring, {}, turn);
  AdvanceRestores(ended.members, turn);
  AdvanceUsersOf(ended.left, turn);
}

void Waker::CancelFor(const std::vector<Session*>& members, Turn& turn) {
  std::vector<quota::RequestId> cancelled;
  for (Session* member : members) {
    const auto asked =
        std::exchange(member->waking.Edit({}).restoring, std::nullopt);
    if (!asked.has_value()) continue;
    recalls_.Cancel(*asked, turn);
    cancelled.push_back(*asked);
  }
  for (const quota::RequestId asked : cancelled)
    AdvanceOthers(asked, members, turn);
}

void Waker::Forget(Session* session) {
  const SessionWaking waking = std::exchange(session->waking.Edit({}), {});
  state_.waking.Edit({}).erase(session->id);
  for (const auto& [client_id, until] : waking.restores)
    state_.restore_times.Edit({}).erase({until, session->id, client_id});
  if (waking.restoring.has_value()) (void)recalls_.End(*waking.restoring);
}

}  // namespace gmb::broker
