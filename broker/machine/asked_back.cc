// Restores of shared leases: which of them one request has asked for.
#include "broker/machine/asked_back.h"

namespace gmb::broker {

void AskedBack::Move(quota::LeaseId lease,
                     std::optional<quota::RequestId> before,
                     std::optional<quota::RequestId> request) {
  if (before.has_value()) {
    const auto its = leases_.find(*before);
    its->second.erase(lease);
    if (its->second.empty()) leases_.erase(its);
  }
  if (request.has_value()) leases_[*request].insert(lease);
}

std::vector<quota::LeaseId> AskedBack::By(quota::RequestId request) const {
  const auto its = leases_.find(request);
  if (its == leases_.end()) return {};
  return {its->second.begin(), its->second.end()};
}

}  // namespace gmb::broker
