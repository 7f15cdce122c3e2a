// The gateway's memory of how fast each tenant calls, and when it is forgotten.
#include "broker/gateway/tenant_paces.h"

#include <algorithm>
#include <cmath>

namespace gmb::broker {

bool TenantPaces::TakeConnect(const std::string& tenant, Time now) {
  return PaceOf(tenant, now).connects.Take(now);
}

void TenantPaces::CountEnd(const std::string& tenant, double calls_of_burst,
                           bool breach, Time now) {
  PaceOf(tenant, now)
      .connects.Spend(std::floor(calls_of_burst / options_.calls_a_connect) +
                      (breach ? options_.connects_a_breach : 0));
}

std::shared_ptr<CallPace> TenantPaces::CallsOf(const std::string& tenant,
                                               Time now) {
  return PaceOf(tenant, now).calls;
}

TenantPaces::Pace& TenantPaces::PaceOf(const std::string& tenant, Time now) {
  if (paces_.size() >= forget_at_) ForgetThoseAtRest(now);
  const auto [pace, is_new] = paces_.try_emplace(
      tenant,
      Pace{{options_.connects_at_once, options_.connects_a_second}, nullptr});
  if (is_new) {
    pace->second.calls = std::make_shared<CallPace>(options_.calls_at_once,
                                                    options_.calls_a_second);
  }
  return pace->second;
}

// One of which nothing is known is as if at rest. A connection that is open
// keeps its tenant's pace.
void TenantPaces::ForgetThoseAtRest(Time now) {
  std::erase_if(paces_, [&](const auto& entry) {
    const Pace& pace = entry.second;
    return pace.connects.SpentOfBurst(now) <= 0 &&
           pace.calls.use_count() == 1 && pace.calls->AtRest(now);
  });
  forget_at_ = std::max(kFirstForgotten, 2 * paces_.size());
}

}  // namespace gmb::broker
