// Sessions: from the greeting to the death of the process.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"
#include "broker/machine/refusals.h"
#include "broker/machine/session_desk.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Memory of a killed process is waited for so long before others are asked.
constexpr quota::Nanoseconds kDyingTakes = std::chrono::seconds(1);

// Commands and monitors that are connected at once.
constexpr size_t kMostOperators = 32;

std::string CallerName(const PeerIdentity& peer) {
  std::string name = absl::StrCat("uid ", peer.uid, ", pid ", peer.pid, " (",
                                  peer.program, ")");
  if (peer.login_uid.has_value() && *peer.login_uid != peer.uid)
    absl::StrAppend(&name, ", logged in as uid ", *peer.login_uid);
  return name;
}

std::vector<std::string> GreetingWarnings(const State& state) {
  std::vector<std::string> warnings;
  for (const auto& [id, pool] : *state.pools) {
    if (pool->info.kind != device::DeviceKind::kHost &&
        pool->headroom_left_bytes() == 0) {
      warnings.push_back(absl::StrCat(
          "the headroom for CUDA contexts has run out; creating a context may "
          "fail, and the pool "
          "has missing bytes: ask the operator for more --headroom: device=",
          pool->uuid(),
          " outside_bytes=", pool->device->reading.outside_bytes));
    }
    if (!pool->device->problem.empty())
      warnings.push_back(
          absl::StrCat(pool->uuid(), ": ", pool->device->problem));
  }
  return warnings;
}

absl::Status CheckRoom(const State& state, bool is_operator) {
  if (is_operator && state.sessions->operators() >= kMostOperators) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("as many operators are connected as may be: end some gmb "
                     "commands: operators=",
                     kMostOperators),
        {.retry_after = absl::Seconds(1)});
  }
  // Operators are not counted: whoever fills the broker, they come in.
  if (!is_operator && state.sessions->clients() >= state.options.max_sessions) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("the broker has as many sessions as it may: raise "
                     "--max-sessions, or close some: max_sessions=",
                     state.options.max_sessions),
        {.retry_after = absl::Seconds(1)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Welcome> SessionDesk::OpenSession(
    const PeerIdentity& peer, const std::string& token,
    std::unique_ptr<SessionGate>&& gate, Turn& turn) {
  const bool is_operator = peer.origin == Origin::kAdmin;
  if (absl::Status room = CheckRoom(state_, is_operator); !room.ok())
    return room;
  std::optional<quota::TenantId> its_tenant;
  Welcome opened;
  if (!is_operator) {
    if (state_.drain_until->has_value()) {
      return proto::MakeError(
          v1::DRAINING, "the broker is stopping: connect to its successor",
          {.retry_after = absl::Seconds(5)});
    }
    absl::StatusOr<quota::TenantId> id =
        state_.tenants->Of(peer, state_.options.default_tenant);
    if (!id.ok()) return id.status();
    if (absl::Status stays = CheckStays(state_, *id); !stays.ok()) return stays;
    const Tenant& tenant = state_.TenantAt(*id);
    if (state_.sessions->OfTenant(*id).size() >= tenant.policy.max_sessions) {
      return proto::MakeError(
          v1::TOO_MANY_SESSIONS,
          absl::StrCat("the tenant has as many sessions as it may: tenant=",
                       tenant.policy.name,
                       " max_sessions=", tenant.policy.max_sessions));
    }
    its_tenant = *id;
    opened.tenant = tenant.policy.name;
  }
  const Session* added = state_.sessions.Edit({}).Add(std::make_unique<Session>(
      Session{.id = state_.sessions->next_id(),
              .peer = peer,
              .token = token,
              .tenant = its_tenant,
              .since = turn.wall(),
              .gate = Placed<SessionGate>(std::move(gate)),
              .talk = {},
              .group = {},
              .never_lends = {},
              .leases = {},
              .leased_bytes = {},
              .last_move = {},
              .waking = {},
              .trims = {}}));
  opened.session = added->id;
  opened.warnings = GreetingWarnings(state_);
  opened.host_pool_bytes = state_.host_books->capacity_bytes();
  for (const auto& [id, pool] : *state_.pools)
    opened.devices.push_back(pool->info);
  Recorder(state_).TouchSession(added->id);
  if (added->tenant.has_value()) {
    v1::Event event = NewEvent(state_, "session_opened", added->tenant);
    event.set_session_id(added->id);
    event.set_message(CallerName(peer));
    turn.Publish(std::move(event));
  }
  return opened;
}

void SessionDesk::End(Session* session, absl::string_view reason, Turn& turn) {
  if (const auto killed = state_.terminating->find(session->id);
      killed != state_.terminating->end()) {
    state_.dying.Edit({}).erase({killed->second, session->id});
    state_.terminating.Edit({}).erase(session->id);
  }
  state_.sessions.Edit({}).ForgetToken(session->token);
  state_.ended_sessions.Edit({}).insert(session->id);
  SessionTalk& talk = session->talk.Edit({});
  talk.terminating = talk.ended = true;
  Recorder(state_).TouchSession(session->id);
  turn.Add(HangUp{session->id, absl::UnavailableError(
                                   absl::StrCat("session ended: ", reason))});
  if (!session->tenant.has_value()) return;
  v1::Event event = NewEvent(state_, "session_closed", session->tenant);
  event.set_session_id(session->id);
  event.set_message(std::string(reason));
  turn.Publish(std::move(event));
}

// Its gate's page is unmapped once the lock is given up.
void SessionDesk::Remove(const Session& session, Turn& turn) {
  state_.ended_sessions.Edit({}).erase(session.id);
  turn.Bury(state_.sessions.Edit({}).Remove(session.id));
}

absl::StatusOr<Caller> SessionDesk::Authenticate(absl::string_view token,
                                                 pid_t pid) const {
  const Session* session = state_.sessions->WithToken(token);
  if (session == nullptr || session->peer.pid != pid) {
    return proto::MakeError(v1::NO_SESSION,
                            "this process has no session with this token: "
                            "greet on the handle socket first and send its "
                            "token as metadata gmb-session-bin");
  }
  return Caller{.session = session->id,
                .is_operator = !session->tenant.has_value(),
                .tenant = session->tenant.value_or(quota::TenantId{}),
                .name = CallerName(session->peer)};
}

void SessionDesk::OnWelcomed(uint64_t session_id) {
  Session* session = state_.sessions->Find(session_id);
  if (session == nullptr || !session->talk->greeting) return;
  session->talk.Edit({}).greeting = false;
  Recorder(state_).TouchSession(session_id);
}

absl::Status SessionDesk::CheckStream(uint64_t session_id) const {
  const Session* session = state_.sessions->Find(session_id);
  if (session == nullptr || session->talk->ended) {
    return proto::MakeError(v1::NO_SESSION,
                            "the session has ended: connect again");
  }
  if (!session->tenant.has_value()) {
    return proto::MakeError(v1::BAD_STATE,
                            "an operator's session has no leases: connect "
                            "through a tenant's socket");
  }
  return absl::OkStatus();
}

Session* SessionDesk::Adopt(const AdoptedSession& adopted,
                            quota::TenantId tenant, uint64_t generation,
                            uint64_t last_lease, Turn& turn) {
  const SessionRecord& record = adopted.record;
  if (record.id == 0 || record.token.empty() ||
      state_.sessions->Find(record.id) != nullptr ||
      state_.sessions->WithToken(record.token) != nullptr) {
    return nullptr;
  }
  // Above all numbers that it knows.
  const uint64_t numbers = generation << 32;
  SessionTalk talk;
  talk.last_frame = numbers;
  talk.leases_before = last_lease;
  talk.greeting = false;
  talk.drops_before = talk.last_drop = record.last_drop;
  SessionTrims trims;
  trims.last_trim = numbers;
  Session* session = state_.sessions.Edit({}).Add(std::make_unique<Session>(
      Session{.id = record.id,
              .peer = {.origin = record.origin,
                       .tenant_directory = record.tenant_directory,
                       .pid = record.pid,
                       .uid = record.uid,
                       .gid = record.gid,
                       .program = record.program,
                       .tenant_token = {},
                       .pidfd = adopted.pidfd},
              .token = record.token,
              .tenant = tenant,
              .since = record.since,
              .gate = Placed<SessionGate>(
                  std::make_unique<SessionGate>(adopted.gate, turn.now())),
              .talk = Owned<SessionTalk, SessionDesk>(std::in_place, talk),
              .group = {},
              .never_lends = {},
              .leases = {},
              .leased_bytes = {},
              .last_move = Owned<uint64_t, LeaseMover>(std::in_place, numbers),
              .waking = {},
              .trims = Owned<SessionTrims, Reclaimer>(std::in_place, trims)}));
  v1::Event event = NewEvent(state_, "session_adopted", tenant);
  event.set_session_id(session->id);
  event.set_message(CallerName(session->peer));
  turn.Publish(std::move(event));
  return session;
}

// Whether it was killed now.
bool SessionDesk::Terminate(Session* session, Turn& turn) {
  if (session->talk->terminating || !session->can_be_killed()) return false;
  session->talk.Edit({}).terminating = true;
  session->talk.Edit({}).dying = true;
  state_.terminating.Edit({})[session->id] = turn.now() + kDyingTakes;
  state_.dying.Edit({}).emplace(turn.now() + kDyingTakes, session->id);
  index_.TouchLeasesOf(*session);
  v1::Event event = NewEvent(state_, "terminated", session->tenant);
  event.set_session_id(session->id);
  event.set_message(absl::StrCat("pid ", session->peer.pid));
  turn.Add(Kill{session->id, session->peer.pidfd, std::move(event)});
  return true;
}

void SessionDesk::OnNotKilled(Session* session, const absl::Status& why,
                              Turn& turn) {
  SessionTalk& talk = session->talk.Edit({});
  if (const auto at = state_.terminating->find(session->id);
      at != state_.terminating->end()) {
    state_.dying.Edit({}).erase({at->second, session->id});
    state_.terminating.Edit({}).erase(session->id);
  }
  talk.terminating = talk.dying = false;
  talk.unkillable = true;
  index_.TouchLeasesOf(*session);
  v1::Event event = NewEvent(state_, "not_terminated", session->tenant);
  event.set_session_id(session->id);
  event.set_message(absl::StrCat(
      "pid ", session->peer.pid, " could not be killed (", why.message(),
      "): give gmbd CAP_KILL or run it as root, or end that process"));
  turn.Publish(std::move(event));
}

void SessionDesk::CheckDying(quota::Instant now) {
  while (!state_.dying->empty() && state_.dying->begin()->first <= now) {
    const uint64_t id = state_.dying->begin()->second;
    state_.dying.Edit({}).erase(state_.dying->begin());
    Session& session = state_.SessionAt(id);
    session.talk.Edit({}).dying = false;
    index_.TouchLeasesOf(session);
  }
}

}  // namespace gmb::broker
