// The messages to sessions: answers, also to repeated requests, slabs, and news
// that nobody asked for.
#include <algorithm>
#include <optional>
#include <utility>

#include "broker/machine/lease_users.h"
#include "broker/machine/quota_view.h"
#include "broker/machine/recorder.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/wire_form.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Whether the session was asked to end, with the broker or with its tenant, and
// how long that waits for it yet.
std::optional<quota::Nanoseconds> TimeToLeave(const State& state,
                                              const Session& session,
                                              const Turn& turn) {
  std::optional<quota::Nanoseconds> left;
  if (state.drain_until->has_value()) {
    left = quota::Nanoseconds(
        absl::ToInt64Nanoseconds(**state.drain_until - turn.wall()));
  }
  if (!session.tenant.has_value()) return left;
  const auto departure = state.departures->find(*session.tenant);
  if (departure == state.departures->end()) return left;
  const quota::Nanoseconds its = departure->second.deadline - turn.now();
  return left.has_value() ? std::min(*left, its) : its;
}

}  // namespace

// The last stream may have lost some of these: Evicts and Maps that are not
// answered, a Trim, a pause, that the session is to end. The client knows moves
// and Trims by their numbers.
void SessionDesk::OnStream(uint64_t session_id, Turn& turn) {
  Session* session = state_.sessions->Find(session_id);
  if (session == nullptr || session->talk->ended) return;
  OnWelcomed(session_id);  // it has the token
  for (const quota::LeaseId id : *session->leases) {
    Lease& lease = state_.LeaseAt(id);
    const Mapping& mapping = *lease.MappingOf(session_id);
    if (mapping.asked) Say(session, MoveMessage(lease, mapping), turn);
  }
  v1::BrokerMessage message;
  if (session->trims->trim.has_value()) {
    *message.mutable_trim() = *session->trims->trim;
    Say(session, message, turn);
  }
  if (state_.pausing->contains(session_id)) {
    message.mutable_pausing();
    Say(session, std::move(message), turn);
  }
  if (const auto left = TimeToLeave(state_, *session, turn)) {
    v1::BrokerMessage draining;
    *draining.mutable_draining()->mutable_remaining() =
        ToProto(std::max(*left, quota::Nanoseconds(0)));
    Say(session, std::move(draining), turn);
  }
}

void SessionDesk::Expect(Session* session, uint64_t client_id,
                         quota::RequestId request) {
  session->talk.Edit({}).pending[client_id] = {.request = request,
                                               .being_made = {}};
}

void SessionDesk::OnMaking(Session* session, uint64_t client_id,
                           quota::LeaseId lease) {
  auto& pending = session->talk.Edit({}).pending;
  const auto unanswered = pending.find(client_id);
  if (unanswered != pending.end()) unanswered->second.being_made = lease;
}

// A request that is repeated on a new stream has no second effect.
bool SessionDesk::AnswerAgain(Session* session, uint64_t client_id,
                              Turn& turn) {
  if (client_id == 0) {
    Refuse(session, 0,
           proto::MakeError(v1::BAD_REQUEST, "a request needs an id above 0",
                            {.field = "request_id"}),
           turn);
    return true;
  }
  const AnswerLog& answers = session->talk->answers;
  if (std::optional<v1::BrokerMessage> answer = answers.Find(client_id)) {
    Say(session, *std::move(answer), turn);
    return true;
  }
  if (GrantAgain(session, client_id, turn)) return true;
  const bool to_come =
      session->talk->pending.contains(client_id) ||
      session->waking->restores.contains(client_id) ||
      state_.shared_names->WaitedFor(session->id, client_id) != nullptr;
  if (to_come) return true;  // however long it has waited
  if (answers.IsForgotten(client_id)) {
    // Not logged as an answer: it must not push out one that still counts.
    v1::BrokerMessage too_old = AnswerTo(client_id);
    *too_old.mutable_error() = proto::ToWireError(proto::MakeError(
        v1::BAD_REQUEST, "the request id is too old: ids must rise",
        {.field = "request_id"}));
    Say(session, std::move(too_old), turn);
    return true;
  }
  return false;
}

// The Grant of the broker before this one.
bool SessionDesk::GrantAgain(Session* session, uint64_t client_id, Turn& turn) {
  const auto granted = session->talk->granted_before.find(client_id);
  if (granted == session->talk->granted_before.end()) return false;
  const Lease* lease = FindLease(state_, *session, granted->second.value);
  if (lease == nullptr) return false;
  v1::BrokerMessage answer = AnswerTo(client_id);
  FillGrant(state_, *lease, answer.mutable_grant());
  if (lease->request.session != session->id)
    answer.mutable_grant()->set_attached(true);
  Say(session, std::move(answer), turn);
  return true;
}

void SessionDesk::ReportQuota(Session* session, uint64_t client_id,
                              Turn& turn) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  v1::QuotaReport* report = answer.mutable_quota_report();
  report->set_tenant(state_.TenantAt(*session->tenant).policy.name);
  for (const auto& [id, pool] : *state_.pools)
    *report->add_quotas() = View(state_, *session->tenant, *pool);
  Answer(session, std::move(answer), turn);
}

void SessionDesk::OnDropped(Session* session, uint64_t client_id) {
  uint64_t& last = session->talk.Edit({}).last_drop;
  last = std::max(last, client_id);
  Recorder(state_).TouchSession(session->id);
}

void SessionDesk::Answer(Session* session, v1::BrokerMessage answer,
                         Turn& turn) {
  session->talk.Edit({}).pending.erase(answer.request_id());
  session->talk.Edit({}).answers.Add(answer);
  Say(session, std::move(answer), turn);
}

void SessionDesk::Refuse(Session* session, uint64_t client_id,
                         const absl::Status& status, Turn& turn) {
  v1::BrokerMessage answer = AnswerTo(client_id);
  *answer.mutable_error() = proto::ToWireError(status);
  if (client_id == 0) return Say(session, std::move(answer), turn);
  Answer(session, std::move(answer), turn);
}

void SessionDesk::Say(const Session* session, v1::BrokerMessage message,
                      Turn& turn) {
  turn.Add(broker::Say{session->id, std::move(message)});
}

void SessionDesk::OnBudgetChanged(const quota::BudgetChanged& changed,
                                  Turn& turn) {
  const Tenant* tenant = state_.tenants->Find(changed.tenant);
  if (tenant == nullptr) return;
  const Pool& pool = state_.PoolAt(changed.pool);
  for (const uint64_t id : state_.sessions->OfTenant(tenant->id)) {
    v1::BrokerMessage message;
    *message.mutable_budget_changed()->mutable_quota() =
        View(state_, changed.tenant, pool);
    Say(&state_.SessionAt(id), std::move(message), turn);
  }
}

// For a Grant (the request that it answers), or for a Map (its number).
void SessionDesk::SendSlabs(Session* session, const Lease& lease,
                            uint64_t request_id, uint64_t move, Turn& turn) {
  for (size_t first = 0; first < lease.held->slabs.size();
       first += ipc::kMaxFds) {
    const size_t end = std::min(first + ipc::kMaxFds, lease.held->slabs.size());
    broker::SendSlabs send;
    send.session = session->id;
    send.packet.set_frame_id(++session->talk.Edit({}).last_frame);
    send.packet.set_lease_id(lease.id.value);
    send.packet.set_request_id(request_id);
    send.packet.set_move(move);
    send.packet.set_first_slab(static_cast<uint32_t>(first));
    send.packet.set_slabs_in_lease(
        static_cast<uint32_t>(lease.held->slabs.size()));
    for (size_t i = first; i < end; ++i) {
      send.packet.add_slab_bytes(lease.held->slabs[i].bytes);
      send.slabs.push_back(lease.held->slabs[i].id);
    }
    turn.Add(std::move(send));
  }
}

}  // namespace gmb::broker
