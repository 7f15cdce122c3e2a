// Operators' sessions: beside the clients' bound, with one of their own.
#include "gtest/gtest.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {
namespace {

MachineOptions TwoSessions() {
  MachineOptions options;
  options.max_sessions = 2;
  return options;
}

class CoreOperatorsTest : public CoreFixture {
 protected:
  CoreOperatorsTest() : CoreFixture(TwoSessions()) {}

  absl::Status Open(Origin origin) {
    PeerIdentity peer;
    peer.origin = origin;
    if (origin != Origin::kAdmin) peer.tenant_directory = "a";
    const absl::StatusOr<OpenedSession> opened = core.OpenSession(peer);
    if (opened.ok()) sessions.push_back(opened->id);
    return opened.status();
  }
};

TEST_F(CoreOperatorsTest, AFullBrokerLetsThemInUpToTheirOwnBound) {
  AddHostPool(64 * kMiB);
  SetTenant("a", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Open(Origin::kTenantDirectory).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Open(Origin::kTenantDirectory)));
  for (int i = 0; i < 32; ++i) {
    const absl::Status opened = Open(Origin::kAdmin);
    EXPECT_TRUE(opened.ok()) << i << ": " << opened;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Open(Origin::kAdmin)));
  core.CloseSession(sessions.back(), "done");
  sessions.pop_back();
  EXPECT_TRUE(Open(Origin::kAdmin).ok());
}

TEST_F(CoreOperatorsTest, TheyTakeNoClientsPlace) {
  AddHostPool(64 * kMiB);
  SetTenant("a", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Open(Origin::kAdmin).ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Open(Origin::kTenantDirectory).ok());
}

}  // namespace
}  // namespace gmb::broker
