// Sessions: from the greeting to the death of the process.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Commands and monitors that are connected at once.
constexpr size_t kMostOperators = 32;

std::string CallerName(const PeerIdentity& peer) {
  return absl::StrCat("uid ", peer.uid, ", pid ", peer.pid, " (", peer.program,
                      ")");
}

}  // namespace

std::vector<std::string> Machine::GreetingWarnings() const {
  std::vector<std::string> warnings;
  for (const auto& [id, pool] : state_.pools) {
    if (pool->info.kind != device::DeviceKind::kHost &&
        pool->headroom_left_bytes() == 0) {
      warnings.push_back(absl::StrCat(
          "the headroom for CUDA contexts has run out; creating a context may "
          "fail, and the pool "
          "has missing bytes: ask the operator for more --headroom: device=",
          pool->uuid(), " outside_bytes=", pool->reading.outside_bytes));
    }
    if (!pool->problem.empty())
      warnings.push_back(absl::StrCat(pool->uuid(), ": ", pool->problem));
  }
  return warnings;
}

absl::StatusOr<Welcome> Machine::OpenSession(
    const PeerIdentity& peer, const std::string& token,
    std::unique_ptr<SessionGate>&& gate, Turn& turn) {
  const bool is_operator = peer.origin == Origin::kAdmin;
  if (is_operator && state_.sessions.operators() >= kMostOperators) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("as many operators are connected as may be: end some gmb "
                     "commands: operators=",
                     kMostOperators),
        {.retry_after = absl::Seconds(1)});
  }
  // Operators are not counted: whoever fills the broker, they come in.
  if (!is_operator &&
      state_.sessions.clients() >= state_.options.max_sessions) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("the broker has as many sessions as it may: raise "
                     "--max-sessions, or close some: max_sessions=",
                     state_.options.max_sessions),
        {.retry_after = absl::Seconds(1)});
  }
  auto session = std::make_unique<Session>();
  Welcome opened;
  if (!is_operator) {
    if (state_.drain_until.has_value()) {
      return proto::MakeError(
          v1::DRAINING, "the broker is stopping: connect to its successor",
          {.retry_after = absl::Seconds(5)});
    }
    absl::StatusOr<quota::TenantId> id =
        state_.tenants.Of(peer, state_.options.default_tenant);
    if (!id.ok()) return id.status();
    if (absl::Status stays = CheckStays(*id); !stays.ok()) return stays;
    Tenant& tenant = state_.TenantAt(*id);
    if (tenant.sessions.size() >= tenant.policy.max_sessions) {
      return proto::MakeError(
          v1::TOO_MANY_SESSIONS,
          absl::StrCat("the tenant has as many sessions as it may: tenant=",
                       tenant.policy.name,
                       " max_sessions=", tenant.policy.max_sessions));
    }
    session->tenant = *id;
    opened.tenant = tenant.policy.name;
  }
  session->peer = peer;
  session->token = token;
  session->gate = std::move(gate);
  session->since = turn.wall();
  const Session* added = state_.sessions.Add(std::move(session));
  opened.session = added->id;
  opened.warnings = GreetingWarnings();
  for (const auto& [id, pool] : state_.pools)
    opened.devices.push_back(pool->info);
  if (added->tenant.has_value()) {
    state_.TenantAt(*added->tenant).sessions.insert(added->id);
    v1::Event event = NewEvent("session_opened", added->tenant);
    event.set_session_id(added->id);
    event.set_message(CallerName(peer));
    turn.Publish(std::move(event));
  }
  return opened;
}

void Machine::CloseSession(uint64_t session_id, absl::string_view reason,
                           Turn& turn) {
  Session* session = state_.sessions.Find(session_id);
  if (session == nullptr) return;
  std::vector<Session*> members = state_.groups.Members(session);
  std::erase(members, session);
  LeaveGroup(session, turn);
  // Its gate page is unmapped once the lock is given up.
  turn.Bury(state_.sessions.Remove(session_id));
  LeaveShared(session);
  state_.pausing.erase(session_id);
  state_.waking.erase(session_id);
  if (const auto killed = state_.terminating.find(session_id);
      killed != state_.terminating.end()) {
    state_.dying.erase({killed->second, session_id});
    state_.terminating.erase(killed);
  }
  for (const auto& [client_id, until] : session->restores)
    state_.restore_times.erase({until, session_id, client_id});
  state_.trimmers.erase(session_id);
  state_.gate_watch.Remove(session_id);
  if (session->restoring.has_value())
    state_.restoring.erase(*session->restoring);
  turn.Add(HangUp{session_id, absl::UnavailableError(
                                  absl::StrCat("session ended: ", reason))});
  if (!session->tenant.has_value()) return;
  state_.TenantAt(*session->tenant).sessions.erase(session_id);
  v1::Event event = NewEvent("session_closed", session->tenant);
  event.set_session_id(session_id);
  event.set_message(std::string(reason));
  turn.Publish(std::move(event));
  for (const auto& [client_id, request] : session->pending) {
    const auto pending = state_.pending.find(request);
    if (pending == state_.pending.end()) continue;
    const PendingAcquire asked = pending->second;
    state_.pending.erase(pending);
    EndName(*session->tenant, asked, turn);
  }
  Tell(quota::SessionClosed{quota::SessionId{session_id}}, turn);
  std::vector<quota::LeaseId> left;
  for (const quota::LeaseId id : session->leases) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->shared) {
      left.push_back(id);
      Detach(session, lease, /*reuse=*/false, turn);
    } else {
      EndLease(id, /*reuse=*/false, turn);
    }
  }
  SessionEnded ended{
      .members = {}, .left = std::move(left), .restoring = session->restoring};
  for (const Session* member : members) ended.members.push_back(member->id);
  turn.Queue(std::move(ended));
}

absl::StatusOr<Caller> Machine::Authenticate(absl::string_view token,
                                             pid_t pid) const {
  const Session* session = state_.sessions.WithToken(token);
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

absl::Status Machine::CheckStream(uint64_t session_id) const {
  const Session* session = state_.sessions.Find(session_id);
  if (session == nullptr) {
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

// What the last stream may have lost: Evicts and Maps that are not answered, a
// Trim, a pause. The client knows them by their numbers.
void Machine::OnStream(uint64_t session_id, Turn& turn) {
  Session* session = state_.sessions.Find(session_id);
  if (session == nullptr) return;
  for (const quota::LeaseId id : session->leases) {
    Lease& lease = state_.LeaseAt(id);
    const Mapping& mapping = *lease.MappingOf(session_id);
    if (mapping.asked) Say(session, MoveMessage(lease, mapping), turn);
  }
  v1::BrokerMessage message;
  if (session->trim.has_value()) {
    *message.mutable_trim() = *session->trim;
    Say(session, message, turn);
  }
  if (state_.pausing.contains(session_id)) {
    message.mutable_pausing();
    Say(session, std::move(message), turn);
  }
  if (state_.drain_until.has_value()) {
    v1::BrokerMessage draining;
    draining.mutable_draining()->mutable_remaining()->set_seconds(
        std::max<int64_t>(
            0, absl::ToInt64Seconds(*state_.drain_until - turn.wall())));
    Say(session, std::move(draining), turn);
  }
}

}  // namespace gmb::broker
