// Leases that the engine is asked to bring back.
#include "broker/machine/recalls.h"

#include <utility>

namespace gmb::broker {

quota::RequestId Recalls::AskBack(uint64_t session,
                                  std::vector<quota::LeaseId> leases,
                                  quota::Instant deadline,
                                  std::optional<quota::LeaseId> for_attach,
                                  Turn& turn) {
  const quota::RequestId request = quota_.NextRequest();
  state_.restoring.Edit({}).emplace(request, Returning{session, for_attach});
  for (const quota::LeaseId id : leases) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->sharing->shared) SetAskedBack(lease, request);
  }
  quota_.Tell(quota::Restore{request, quota::SessionId{session},
                             std::move(leases), deadline},
              turn);
  return request;
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

const Returning* ReturningOf(const State& state, const Lease& lease) {
  if (!lease.asked_back->has_value()) return nullptr;
  const auto found = state.restoring->find(**lease.asked_back);
  return found == state.restoring->end() ? nullptr : &found->second;
}

}  // namespace gmb::broker
