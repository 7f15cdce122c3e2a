// Sessions: from the greeting to the death of the process.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"
#include "ipc/gate_page.h"
#include "ipc/random.h"
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

std::vector<std::string> Core::GreetingWarnings() const {
  std::vector<std::string> warnings;
  for (const auto& [id, pool] : pools_) {
    const v1::PoolStatus status = Report(*pool);
    if (pool->info().kind != device::DeviceKind::kHost &&
        status.headroom_left_bytes() == 0) {
      warnings.push_back(absl::StrCat(
          "the headroom for CUDA contexts has run out; creating a context may "
          "fail, and the pool "
          "has missing bytes: ask the operator for more --headroom: device=",
          pool->uuid(), " outside_bytes=", status.outside_bytes()));
    }
    if (!pool->problem.empty())
      warnings.push_back(absl::StrCat(pool->uuid(), ": ", pool->problem));
  }
  return warnings;
}

absl::StatusOr<OpenedSession> Core::OpenSession(const PeerIdentity& peer) {
  absl::StatusOr<std::string> token = ipc::RandomToken(16);
  if (!token.ok()) return token.status();
  std::unique_ptr<SessionGate> gate;
  ipc::UniqueFd gate_page;
  if (peer.origin != Origin::kAdmin) {
    absl::StatusOr<ipc::UniqueFd> fd = ipc::CreateGatePage();
    if (!fd.ok()) return fd.status();
    absl::StatusOr<ipc::GatePage> page = ipc::GatePage::Map(fd->get());
    if (!page.ok()) return page.status();
    gate = std::make_unique<SessionGate>(*std::move(page), deps_.clock->Now());
    gate_page = *std::move(fd);
  }
  absl::StatusOr<OpenedSession> opened =
      OpenSessionAs(peer, *token, std::move(gate));
  if (opened.ok()) opened->gate_page = std::move(gate_page);
  deps_.events->Wake();
  return opened;
}

absl::StatusOr<OpenedSession> Core::OpenSessionAs(
    const PeerIdentity& peer, const std::string& token,
    std::unique_ptr<SessionGate> gate) {
  ipc::MutexLock lock(&mu_);
  const bool is_operator = peer.origin == Origin::kAdmin;
  if (is_operator && sessions_.operators() >= kMostOperators) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("as many operators are connected as may be: end some gmb "
                     "commands: operators=",
                     kMostOperators),
        {.retry_after = absl::Seconds(1)});
  }
  // Operators are not counted: whoever fills the broker, they come in.
  if (!is_operator && sessions_.clients() >= options_.max_sessions) {
    return proto::MakeError(
        v1::TOO_MANY_SESSIONS,
        absl::StrCat("the broker has as many sessions as it may: raise "
                     "--max-sessions, or close some: max_sessions=",
                     options_.max_sessions),
        {.retry_after = absl::Seconds(1)});
  }
  auto session = std::make_unique<Session>();
  OpenedSession opened;
  if (!is_operator) {
    if (drain_until_.has_value()) {
      return proto::MakeError(
          v1::DRAINING, "the broker is stopping: connect to its successor",
          {.retry_after = absl::Seconds(5)});
    }
    absl::StatusOr<quota::TenantId> id =
        tenants_.Of(peer, options_.default_tenant);
    if (!id.ok()) return id.status();
    if (absl::Status stays = CheckStays(*id); !stays.ok()) return stays;
    Tenant& tenant = tenants_.at(*id);
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
  session->since = deps_.clock->WallTime();
  session->outbox = std::make_shared<Outbox>();
  const Session* added = sessions_.Add(std::move(session));
  opened.id = added->id;
  opened.token = token;
  opened.outbox = added->outbox;
  opened.warnings = GreetingWarnings();
  for (const auto& [id, pool] : pools_) opened.devices.push_back(pool->info());
  if (added->tenant.has_value()) {
    tenants_.at(*added->tenant).sessions.insert(added->id);
    v1::Event event = NewEvent("session_opened", added->tenant);
    event.set_session_id(added->id);
    event.set_message(CallerName(peer));
    deps_.events->Publish(std::move(event));
  }
  return opened;
}

void Core::CloseSession(uint64_t session, absl::string_view reason) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    CloseSessionLocked(session, reason, &after);
    Maintain(&after);
  }
  after.Run(this);
}

void Core::CloseSessionLocked(uint64_t session_id, absl::string_view reason,
                              Afterwards* after) {
  Session* session = sessions_.Find(session_id);
  if (session == nullptr) return;
  std::vector<Session*> members = groups_.Members(session);
  std::erase(members, session);
  LeaveGroup(session, after);
  // Its gate page is unmapped once the lock is given up.
  after->ended.push_back(sessions_.Remove(session_id));
  LeaveShared(session);
  pausing_.erase(session_id);
  waking_.erase(session_id);
  terminating_.erase(session_id);
  if (session->restoring.has_value()) restoring_.erase(*session->restoring);
  after->close.emplace_back(
      session->outbox,
      absl::UnavailableError(absl::StrCat("session ended: ", reason)));
  if (!session->tenant.has_value()) return;
  tenants_.at(*session->tenant).sessions.erase(session_id);
  v1::Event event = NewEvent("session_closed", session->tenant);
  event.set_session_id(session_id);
  event.set_message(std::string(reason));
  deps_.events->Publish(std::move(event));
  for (const auto& [client_id, request] : session->pending) {
    const auto pending = pending_.find(request);
    if (pending == pending_.end()) continue;
    const PendingAcquire asked = pending->second;
    pending_.erase(pending);
    EndName(*session->tenant, asked, after);
  }
  Tell(quota::SessionClosed{quota::SessionId{session_id}}, after);
  std::vector<quota::LeaseId> left;
  for (const quota::LeaseId id : session->leases) {
    Lease* lease = leases_.at(id).get();
    if (lease->shared) {
      left.push_back(id);
      Detach(session, lease, /*reuse=*/false, after);
    } else {
      EndLease(id, /*reuse=*/false, after);
    }
  }
  if (session->restoring.has_value())
    AdvanceOthers(*session->restoring, nullptr, after);
  for (Session* member : members) AdvanceRestore(member, after);
  AdvanceUsersOf(left, after);
}

absl::StatusOr<Caller> Core::Authenticate(absl::string_view token,
                                          pid_t pid) const {
  ipc::MutexLock lock(&mu_);
  const Session* session = sessions_.WithToken(token);
  if (session == nullptr || session->peer.pid != pid) {
    return proto::MakeError(v1::NO_SESSION,
                            "this process has no session with this token: "
                            "greet on the handle socket first and send its "
                            "token as metadata gmb-session-bin");
  }
  return Caller{session->id, !session->tenant.has_value(),
                CallerName(session->peer)};
}

absl::StatusOr<std::shared_ptr<Outbox>> Core::AttachStream(
    uint64_t session_id, std::shared_ptr<StreamSink> sink) {
  std::shared_ptr<Outbox> outbox;
  std::optional<absl::Duration> draining;
  {
    ipc::MutexLock lock(&mu_);
    const Session* session = sessions_.Find(session_id);
    if (session == nullptr) {
      return proto::MakeError(v1::NO_SESSION,
                              "the session has ended: connect again");
    }
    if (!session->tenant.has_value()) {
      return proto::MakeError(v1::BAD_STATE,
                              "an operator's session has no leases: connect "
                              "through a tenant's socket");
    }
    outbox = session->outbox;
    if (drain_until_.has_value())
      draining = *drain_until_ - deps_.clock->WallTime();
  }
  outbox->AttachStream(std::move(sink));
  RepeatMoves(session_id);
  if (draining.has_value()) {
    v1::BrokerMessage message;
    message.mutable_draining()->mutable_remaining()->set_seconds(
        std::max<int64_t>(0, absl::ToInt64Seconds(*draining)));
    outbox->Push(std::move(message));
    outbox->Pump();
  }
  return outbox;
}

// What the last stream may have lost: Evicts and Maps that are not answered, a
// Trim, a pause. The client knows them by their numbers.
void Core::RepeatMoves(uint64_t session_id) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    Session* session = sessions_.Find(session_id);
    if (session == nullptr) return;
    for (const quota::LeaseId id : session->leases) {
      Lease& lease = *leases_.at(id);
      const Mapping& mapping = *lease.MappingOf(session_id);
      if (mapping.asked) Say(session, MoveMessage(lease, mapping), &after);
    }
    v1::BrokerMessage message;
    if (session->trim.has_value()) {
      *message.mutable_trim() = *session->trim;
      Say(session, message, &after);
    }
    if (pausing_.contains(session_id)) {
      message.mutable_pausing();
      Say(session, std::move(message), &after);
    }
  }
  after.Run(this);
}

}  // namespace gmb::broker
