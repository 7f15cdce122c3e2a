// Events, each to its owner; and the end of a session, which concerns most of
// them.
#include "broker/machine/machine.h"

#include <utility>
#include <vector>

#include "broker/machine/lease_users.h"

namespace gmb::broker {

Machine::Machine(const MachineOptions& options, uint64_t host_pool_bytes)
    : state_(options, host_pool_bytes) {}

Machine::Machine(const Machine& other) : state_(other.state_) {}

Machine::~Machine() = default;

absl::StatusOr<Welcome> Machine::OpenSession(
    const PeerIdentity& peer, const std::string& token,
    std::unique_ptr<SessionGate>&& gate, Turn& turn) {
  return sessions_.OpenSession(peer, token, std::move(gate), turn);
}

void Machine::CloseSession(uint64_t session_id, absl::string_view reason,
                           Turn& turn) {
  Session* session = state_.sessions->Find(session_id);
  if (session == nullptr || session->talk->ended) return;
  SessionEnded ended;
  for (const Session* member : MembersOf(state_, session)) {
    if (member != session) ended.members.push_back(member->id);
  }
  const bool stays = session->leases->size() > state_.options.most_ends_at_once;
  std::vector<quota::LeaseId> leave;
  if (!stays) leave.assign(session->leases->begin(), session->leases->end());
  gatekeeper_.LeaveGroup(session, turn);
  // Nobody can speak for it any more, before anything else is done.
  sessions_.End(session, reason, turn);
  if (!stays) sessions_.Remove(*session, turn);
  ended.restoring = session->waking->restoring;
  if (stays) gatekeeper_.EndPauseOf(session, turn);
  ended.left = Forget(session);
  if (!session->tenant.has_value()) return;
  requests_.ForgetSession(*session, turn);
  for (const quota::LeaseId id : stays ? ended.left : leave)
    sharing_.Leave(session, &state_.LeaseAt(id), /*reuse=*/false, turn);
  turn.Queue(std::move(ended));
}

std::vector<quota::LeaseId> Machine::Forget(Session* session) {
  gatekeeper_.Forget(*session);
  waker_.Forget(session);
  reclaimer_.Forget(*session);
  lookout_.Forget(*session);
  return sharing_.ForgetSession(session);
}

// Its own leases, one after the other; it goes with the last of them.
void Machine::EndWhatIsLeft(Turn& turn) {
  uint64_t most = state_.options.most_ends_at_once;
  while (!state_.ended_sessions->empty()) {
    Session* session = &state_.SessionAt(*state_.ended_sessions->begin());
    for (; most > 0 && !session->leases->empty(); --most) {
      Lease* lease = &state_.LeaseAt(*session->leases->begin());
      sharing_.Leave(session, lease, /*reuse=*/false, turn);
    }
    if (!session->leases->empty()) return;
    (void)Forget(session);
    sessions_.Remove(*session, turn);
  }
}

void Machine::OnDeviceResult(quota::PoolId pool, const DeviceResult& result,
                             Turn& turn) {
  pools_.OnDeviceResult(pool, result, turn);
}

void Machine::OnCopied(quota::LeaseId id, const absl::Status& status,
                       Turn& turn) {
  mover_.OnCopied(id, status, turn);
}

void Machine::Tick(Turn& turn) { quota_.Tell(quota::Tick{}, turn); }

}  // namespace gmb::broker
