#include "broker/daemon/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status NoSuchTenant() {
  return proto::MakeError(v1::NO_SUCH_TENANT, "no tenant has this token");
}

class RefusalLogTest : public testing::Test {
 protected:
  RefusalLogTest() {
    peer_.uid = 1000;
    peer_.pid = 47;
    peer_.program = "trainer";
    peer_.tenant_token = "a-secret-that-is-wrong";
  }
  // All that was published, once the bus has delivered it.
  std::vector<v1::Event> Published() {
    bus_.reset();
    return heard_;
  }

  std::vector<v1::Event> heard_;  // the bus's until it is gone
  std::unique_ptr<EventBus> bus_ = std::make_unique<EventBus>();
  uint64_t listener_ = bus_->Subscribe(
      [this](const v1::Event& event) { heard_.push_back(event); });
  PeerIdentity peer_;
  RefusalLog log_{bus_.get()};
  const absl::Time start_ = absl::UnixEpoch();
};

TEST_F(RefusalLogTest, SaysWhoWasRefusedAndWhyButNoSecret) {
  log_.Add(peer_, NoSuchTenant(), start_);
  const std::vector<v1::Event> events = Published();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind(), "session_refused");
  EXPECT_TRUE(events[0].has_at());
  EXPECT_THAT(
      events[0].message(),
      AllOf(HasSubstr("uid 1000, pid 47 (trainer) on the shared socket, with "
                      "a token: NO_SUCH_TENANT: no tenant has this token"),
            Not(HasSubstr("a-secret"))));
}

TEST_F(RefusalLogTest, ATenantsOwnSocketNamesTheTenant) {
  peer_.origin = Origin::kTenantDirectory;
  peer_.tenant_directory = "batch";
  log_.Add(peer_, proto::MakeError(v1::TOO_MANY_SESSIONS, "full"), start_);
  const std::vector<v1::Event> events = Published();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].tenant(), "batch");
  EXPECT_THAT(events[0].message(), HasSubstr("the tenant's socket"));
}

TEST_F(RefusalLogTest, AFloodIsCountedAndHidesNoOtherReason) {
  for (int i = 0; i < 100; ++i) log_.Add(peer_, NoSuchTenant(), start_);
  log_.Add(peer_, proto::MakeError(v1::TOO_MANY_SESSIONS, "full"), start_);
  log_.Add(peer_, NoSuchTenant(), start_ + absl::Seconds(1));
  const std::vector<v1::Event> events = Published();
  ASSERT_EQ(events.size(), 12U);
  EXPECT_THAT(events[10].message(), HasSubstr("TOO_MANY_SESSIONS"));
  EXPECT_THAT(events[11].message(), HasSubstr("(90 more were left out)"));
}

}  // namespace
}  // namespace gmb::broker
