// Leases that the engine is asked to bring back.
#include "broker/machine/recalls.h"

#include <utility>

#include "broker/machine/attempts.h"
#include "broker/machine/lease_users.h"

namespace gmb::broker {

quota::RequestId Recalls::AskBack(uint64_t session,
                                  std::vector<quota::LeaseId> leases,
                                  quota::Instant deadline,
                                  std::optional<quota::LeaseId> for_attach,
                                  Turn& turn) {
  const quota::RequestId request = quota_.NextRequest();
  state_.restoring.Edit({}).emplace(request, Returning{session, for_attach});
  // The bytes that were collected, and the turn, stay those of a client that asks
  // again; but while a request waits nobody else can ask for the shared leases in
  // it.
  quota::Nanoseconds linger = kAskedAgainWithin;
  for (const quota::LeaseId id : leases) {
    Lease* lease = &state_.LeaseAt(id);
    if (!lease->sharing->shared) continue;
    SetAskedBack(lease, request);
    linger = quota::Nanoseconds(0);
  }
  quota_.Tell(quota::Restore{request, quota::SessionId{session},
                             std::move(leases), deadline, linger},
              turn);
  return request;
}

void Recalls::AskOn(quota::RequestId request, quota::Instant deadline,
                    Turn& turn) {
  // It may have been answered in this turn.
  if (!state_.engine->IsWaiting(request)) return;
  if (!state_.asked_back->By(request).empty()) return;
  quota_.Tell(quota::Restore{request, {}, {}, deadline, kAskedAgainWithin},
              turn);
}

std::optional<Returning> Recalls::End(quota::RequestId request) {
  const auto found = state_.restoring->find(request);
  if (found == state_.restoring->end()) return std::nullopt;
  const Returning returning = found->second;
  state_.restoring.Edit({}).erase(request);
  return returning;
}

void Recalls::Cancel(quota::RequestId request, Turn& turn) {
  (void)End(request);
  quota_.Tell(quota::Cancel{request}, turn);
}

void Recalls::BeginReturns(const Pool& pool, Turn& turn) {
  if (state_.engine->waiting() == 0) return;
  const uint64_t leaving =
      state_.reclaim->IncomingBytes(pool.id, {}, /*pausing=*/false);
  if (leaving > 0) quota_.Tell(quota::BytesLeaving{pool.id, leaving}, turn);
}

void Recalls::Adopt(Lease* lease) {
  SetAskedBack(lease, state_.engine->RestoreOf(lease->id));
}

void Recalls::Forget(Lease* lease) { SetAskedBack(lease, std::nullopt); }

void Recalls::SetAskedBack(Lease* lease,
                           std::optional<quota::RequestId> request) {
  std::optional<quota::RequestId>& asked_back = lease->asked_back.Edit({});
  state_.asked_back.Edit({}).Move(lease->id, asked_back, request);
  asked_back = request;
}

void Recalls::PutOff(quota::LeaseId id, Turn& turn) {
  const auto found = state_.leases->find(id);
  if (found == state_.leases->end()) return;  // it has ended
  Lease* lease = found->second.get();
  lease->put_off.Edit({}) = true;
  const quota::Instant until =
      turn.now() + PutOffFor(RestoreAttempts(state_, *lease));
  state_.restores_put_off.Edit({}).insert({until, id});
}

void Recalls::EndPutOffs(Turn& turn) {
  constexpr int kMostAtOnce = 64;  // the next turn goes on
  auto& put_off = state_.restores_put_off.Edit({});
  for (int i = 0; i < kMostAtOnce && !put_off.empty() &&
                  put_off.begin()->first <= turn.now();
       ++i) {
    const quota::LeaseId id = put_off.extract(put_off.begin()).value().second;
    const auto lease = state_.leases->find(id);
    if (lease == state_.leases->end()) continue;  // it has ended
    lease->second->put_off.Edit({}) = false;
    turn.Queue(LeaseSettled{id});
  }
}

const Returning* ReturningOf(const State& state, const Lease& lease) {
  if (!lease.asked_back->has_value()) return nullptr;
  const auto found = state.restoring->find(**lease.asked_back);
  return found == state.restoring->end() ? nullptr : &found->second;
}

}  // namespace gmb::broker
