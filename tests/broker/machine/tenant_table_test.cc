// Which tenant a peer is.
#include "broker/machine/tenant_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

class TenantTableTest : public testing::Test {
 protected:
  quota::TenantId Set(const std::string& name, std::vector<uint32_t> uids,
                      const std::string& token = "") {
    TenantPolicy policy;
    policy.name = name;
    policy.uids = std::move(uids);
    policy.token = token;
    return tenants.Set(policy).id;
  }
  // 0: none.
  uint64_t OfUid(uint32_t uid) {
    PeerIdentity peer;
    peer.uid = uid;
    const auto id = tenants.Of(peer, "");
    return id.ok() ? id->value : 0;
  }
  uint64_t OfToken(const std::string& token) {
    PeerIdentity peer;
    peer.uid = 7;
    peer.tenant_token = token;
    const auto id = tenants.Of(peer, "");
    return id.ok() ? id->value : 0;
  }

  TenantTable tenants;
};

TEST_F(TenantTableTest, OfThoseWhoHaveAUidTheFirstCounts) {
  const quota::TenantId a = Set("a", {7, 8});
  const quota::TenantId b = Set("b", {8, 9});
  EXPECT_EQ(OfUid(7), a.value);
  EXPECT_EQ(OfUid(8), a.value);
  EXPECT_EQ(OfUid(9), b.value);
  EXPECT_EQ(OfUid(10), 0u);
}

TEST_F(TenantTableTest, WhatAChangeLeavesOutIsNobodys) {
  const quota::TenantId a = Set("a", {7, 8}, "secret");
  const quota::TenantId b = Set("b", {8});
  EXPECT_EQ(OfToken("secret"), a.value);
  Set("a", {7}, "other");
  EXPECT_EQ(OfUid(7), a.value);
  EXPECT_EQ(OfUid(8), b.value);
  EXPECT_EQ(OfToken("secret"), 0u);
  EXPECT_EQ(OfToken("other"), a.value);
  tenants.Remove(a);
  EXPECT_EQ(OfUid(7), 0u);
  EXPECT_EQ(OfToken("other"), 0u);
}

TEST_F(TenantTableTest, ATokenDecidesBeforeAUid) {
  Set("a", {7});
  const quota::TenantId b = Set("b", {}, "secret");
  const quota::TenantId c = Set("c", {}, "another");
  EXPECT_EQ(OfToken("secret"), b.value);
  EXPECT_EQ(OfToken("another"), c.value);
  EXPECT_EQ(OfToken("wrong"), 0u);
}

}  // namespace
}  // namespace gmb::broker
