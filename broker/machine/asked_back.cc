// Restores of shared leases: which of them one request has asked for.
#include "broker/machine/asked_back.h"

namespace gmb::broker {

void AskedBack::Set(Lease& lease, std::optional<quota::RequestId> request) {
  if (lease.asked_back.has_value()) {
    const auto before = leases_.find(*lease.asked_back);
    before->second.erase(lease.id);
    if (before->second.empty()) leases_.erase(before);
  }
  lease.asked_back = request;
  if (request.has_value()) leases_[*request].insert(lease.id);
}

std::vector<quota::LeaseId> AskedBack::By(quota::RequestId request) const {
  const auto its = leases_.find(request);
  if (its == leases_.end()) return {};
  return {its->second.begin(), its->second.end()};
}

}  // namespace gmb::broker
