#ifndef GMB_BROKER_GATEWAY_TENANT_PACES_H_
#define GMB_BROKER_GATEWAY_TENANT_PACES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "broker/doors/token_bucket.h"
#include "broker/gateway/call_pace.h"

namespace gmb::broker {

// How often each tenant's processes may connect, and how fast its connections
// open calls. Tenants come and go for as long as the broker runs: those at rest
// are forgotten now and then. Of one thread.
class TenantPaces {
 public:
  using Time = TokenBucket::Time;
  struct Options {
    // How often a tenant's processes may connect; beyond it they wait. A
    // connection has bounds, so the number of connections that follow each other
    // has to have one as well. A connection that made many calls of late counts
    // as more than one when it ends, and so does one that broke a bound.
    double connects_at_once = 512;
    double connects_a_second = 64;
    double calls_a_connect = 8;
    double connects_a_breach = 32;
    // How fast a tenant's connections open calls, all of them together; further
    // calls wait, unread.
    double calls_at_once = 256;
    double calls_a_second = 128;
  };
  // From so many on, tenants at rest are forgotten now and then.
  static constexpr size_t kFirstForgotten = 64;

  explicit TenantPaces(const Options& options) : options_(options) {}

  // False: the tenant connects too often.
  [[nodiscard]] bool TakeConnect(const std::string& tenant, Time now);
  // A connection of the tenant has ended that made so many calls of late.
  void CountEnd(const std::string& tenant, double calls_of_burst, bool breach,
                Time now);
  // Of a connection, which keeps it.
  [[nodiscard]] std::shared_ptr<CallPace> CallsOf(const std::string& tenant,
                                                  Time now);

  // That it remembers: those that are there, or were not long ago, and some
  // others.
  [[nodiscard]] size_t tenants() const { return paces_.size(); }

 private:
  struct Pace {
    TokenBucket connects;
    std::shared_ptr<CallPace> calls;
  };

  [[nodiscard]] Pace& PaceOf(const std::string& tenant, Time now);
  void ForgetThoseAtRest(Time now);

  const Options options_;
  std::map<std::string, Pace> paces_;
  size_t forget_at_ = kFirstForgotten;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_TENANT_PACES_H_
