// Short words for the example tests. Pools have a granularity of 1 byte, so
// that the figures of an example are the figures of its rule.
#ifndef GMB_TESTS_QUOTA_ENGINE_FIXTURE_H_
#define GMB_TESTS_QUOTA_ENGINE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "quota/engine.h"
#include "tests/quota/describe.h"

namespace gmb::quota {

class EngineTest : public ::testing::Test {
 protected:
  static constexpr PoolId kPool{1};
  static constexpr TenantId kA{1}, kB{2}, kC{3};
  static constexpr Nanoseconds kSecond = std::chrono::seconds(1);

  // A pool of 100 bytes and tenants A, B and C that may borrow all of it.
  void SetUp() override {
    Do(PoolSet{kPool, 100, 1});
    for (const TenantId tenant : {kA, kB, kC}) {
      Do(TenantSet{.tenant = tenant});
      SetQuota(tenant, 0, 100);
    }
  }

  Effects Do(const Event& event) { return last_ = engine_.Handle(event, now_); }
  void Advance(Nanoseconds d) { now_ = now_ + d; }

  void SetQuota(TenantId tenant, uint64_t guarantee, uint64_t limit,
                double weight = 1) {
    Do(QuotaSet{kPool,
                tenant,
                {Amount::Bytes(guarantee), Amount::Bytes(limit), weight}});
  }

  // A request that does not wait: its lease, if granted.
  std::optional<LeaseId> Take(TenantId tenant, uint64_t bytes) {
    Do(Acquire{.request = RequestId{++last_request_},
               .session = SessionId{tenant.value},
               .tenant = tenant,
               .pool = kPool,
               .bytes = bytes,
               .deadline = now_});
    return LeaseOf(RequestId{last_request_});
  }
  // A request that waits for up to 10 s, as session 10 * tenant.
  RequestId Wait(TenantId tenant, uint64_t bytes,
                 Nanoseconds wait = std::chrono::seconds(10)) {
    Do(Acquire{.request = RequestId{++last_request_},
               .session = SessionId{10 * tenant.value},
               .tenant = tenant,
               .pool = kPool,
               .bytes = bytes,
               .deadline = now_ + wait});
    return RequestId{last_request_};
  }
  void Release(std::optional<LeaseId> lease) { Do(Released{lease.value()}); }

  // From the effects of the last event.
  std::optional<LeaseId> LeaseOf(RequestId request) const {
    for (const Effect& effect : last_) {
      const auto* granted = std::get_if<Granted>(&effect);
      if (granted != nullptr && granted->request == request)
        return granted->lease;
    }
    return std::nullopt;
  }
  std::vector<RequestId> GrantedRequests() const {
    std::vector<RequestId> requests;
    for (const Effect& effect : last_) {
      if (const auto* granted = std::get_if<Granted>(&effect)) {
        requests.push_back(granted->request);
      }
    }
    return requests;
  }
  // "Denied request=3 session=1 TENANT_LIMIT deficit=5" and so on, in order.
  std::vector<std::string> Said() const {
    std::vector<std::string> said;
    for (const Effect& effect : last_) said.push_back(Describe(effect));
    return said;
  }
  const Denied& OnlyDenied() const {
    const Denied* only = nullptr;
    for (const Effect& effect : last_) {
      if (const auto* denied = std::get_if<Denied>(&effect)) only = denied;
    }
    static const Denied kNone{.reason = Reason::kBadState,
                              .deficit_bytes = 999999};
    return only == nullptr ? kNone : *only;
  }

  PoolView Pool() const { return *engine_.Pool(kPool); }
  TenantPoolView View(TenantId tenant) const {
    return *engine_.TenantPool(tenant, kPool);
  }

  Engine engine_;
  Instant now_;
  Effects last_;
  uint64_t last_request_ = 0;
};

MATCHER_P2(IsDenied, reason, deficit_bytes, "") {
  *result_listener << ReasonName(arg.reason) << " " << arg.deficit_bytes;
  return arg.reason == reason &&
         arg.deficit_bytes == static_cast<uint64_t>(deficit_bytes);
}

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_ENGINE_FIXTURE_H_
