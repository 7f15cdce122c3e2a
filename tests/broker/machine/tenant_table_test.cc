// Which tenant a peer is (docs/configuration.md, docs/protocol.md section 1).
#include "broker/machine/tenant_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

class TenantTableTest : public testing::Test {
 protected:
  quota::TenantId Add(const std::string& name, std::vector<uint32_t> uids = {},
                      const std::string& token = "") {
    TenantPolicy policy;
    policy.name = name;
    policy.uids = std::move(uids);
    policy.token = token;
    return table.Set(policy).id;
  }
  // 0: none.
  uint64_t OfUid(uint32_t uid) {
    PeerIdentity peer;
    peer.uid = uid;
    const auto id = table.Of(peer, "");
    return id.ok() ? id->value : 0;
  }
  // Of a peer with the uid 7.
  uint64_t OfToken(const std::string& token) {
    PeerIdentity peer;
    peer.uid = 7;
    peer.tenant_token = token;
    const auto id = table.Of(peer, "");
    return id.ok() ? id->value : 0;
  }
  TenantTable table;
};

TEST_F(TenantTableTest, ATenantIsFoundByItsIdAndItsName) {
  const quota::TenantId next = table.next_id();
  const quota::TenantId a = Add("a");
  EXPECT_EQ(a, next);
  EXPECT_EQ(table.Find(a)->policy.name, "a");
  EXPECT_EQ(table.Find("a")->id, a);
  EXPECT_EQ(table.Find("b"), nullptr);
  EXPECT_EQ(table.Find(quota::TenantId{99}), nullptr);
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(TenantTableTest, AChangeKeepsTheId) {
  const quota::TenantId a = Add("a", {1000});
  EXPECT_EQ(Add("a", {2000}), a);
  EXPECT_EQ(table.Find(a)->policy.uids, std::vector<uint32_t>{2000});
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(TenantTableTest, AnIdIsNeverUsedAgain) {
  const quota::TenantId first = Add("a");
  table.Remove(first);
  EXPECT_EQ(table.Find("a"), nullptr);
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_NE(Add("a"), first) << "what the old one owes is not the new one's";
}

TEST_F(TenantTableTest, AListGoesOnBehindTheNameWhereItStopped) {
  for (const char* name : {"c", "a", "b"}) Add(name);
  std::vector<std::string> names;
  for (const Tenant* tenant = table.FindAfter(""); tenant != nullptr;
       tenant = table.FindAfter(names.back()))
    names.push_back(tenant->policy.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(table.FindAfter("aa")->policy.name, "b") << "gone meanwhile";
}

TEST_F(TenantTableTest, WhichTenantAPeerIs) {
  Add("dir", {1});
  Add("secret", {2}, "s3cret");
  Add("uid", {1000, 1001});
  Add("other");
  struct Row {
    const char* why;
    PeerIdentity peer;
    const char* by_default;
    const char* is;  // or the refusal
  };
  const auto peer = [](Origin origin, const char* directory, uid_t uid,
                       const char* token) {
    PeerIdentity identity;
    identity.origin = origin;
    identity.tenant_directory = directory;
    identity.uid = uid;
    identity.tenant_token = token;
    return identity;
  };
  const Origin own = Origin::kTenantDirectory;
  const Origin shared = Origin::kShared;
  for (const Row& row : std::vector<Row>{
           {"the directory", peer(own, "dir", 9, ""), "", "dir"},
           {"the directory before all", peer(own, "dir", 1000, "s3cret"),
            "other", "dir"},
           {"a deleted one's directory", peer(own, "gone", 1000, "s3cret"),
            "other", "NO_SUCH_TENANT"},
           {"a token", peer(shared, "", 9, "s3cret"), "", "secret"},
           {"a token before a uid", peer(shared, "", 1000, "s3cret"), "other",
            "secret"},
           {"a wrong token opens nothing else", peer(shared, "", 1000, "x"),
            "other", "NO_SUCH_TENANT"},
           {"the beginning of a token", peer(shared, "", 9, "s3cre"), "",
            "NO_SUCH_TENANT"},
           {"a uid", peer(shared, "", 1001, ""), "other", "uid"},
           {"the default", peer(shared, "", 9, ""), "other", "other"},
           {"a default that there is not", peer(shared, "", 9, ""), "gone",
            "NO_SUCH_TENANT"},
           {"nothing", peer(shared, "", 9, ""), "", "NO_SUCH_TENANT"},
           // On the shared socket a directory's name is only a claim.
           {"a directory's name elsewhere", peer(shared, "dir", 9, ""), "",
            "NO_SUCH_TENANT"},
       }) {
    const auto found = table.Of(row.peer, row.by_default);
    EXPECT_EQ(
        found.ok() ? table.Find(*found)->policy.name : ReasonOf(found.status()),
        row.is)
        << row.why;
  }
}

// A tenant without a token is no one's who sends none.
TEST_F(TenantTableTest, NoTokenIsNoTenantsToken) {
  Add("a");
  PeerIdentity peer;
  peer.uid = 9;
  EXPECT_EQ(ReasonOf(table.Of(peer, "").status()), "NO_SUCH_TENANT");
}

TEST_F(TenantTableTest, ARefusalDoesNotTellTheToken) {
  Add("a", {}, "s3cret");
  PeerIdentity peer;
  peer.tenant_token = "attempt";
  const std::string text = table.Of(peer, "").status().ToString();
  EXPECT_EQ(text.find("s3cret"), std::string::npos);
  EXPECT_EQ(text.find("attempt"), std::string::npos);
}

TEST_F(TenantTableTest, OfThoseWhoHaveAUidTheFirstCounts) {
  const quota::TenantId a = Add("a", {7, 8});
  const quota::TenantId b = Add("b", {8, 9});
  EXPECT_EQ(OfUid(7), a.value);
  EXPECT_EQ(OfUid(8), a.value);
  EXPECT_EQ(OfUid(9), b.value);
  EXPECT_EQ(OfUid(10), 0u);
}

TEST_F(TenantTableTest, WhatAChangeLeavesOutIsNobodys) {
  const quota::TenantId a = Add("a", {7, 8}, "secret");
  const quota::TenantId b = Add("b", {8});
  EXPECT_EQ(OfToken("secret"), a.value);
  Add("a", {7}, "other");
  EXPECT_EQ(OfUid(7), a.value);
  EXPECT_EQ(OfUid(8), b.value);
  EXPECT_EQ(OfToken("secret"), 0u);
  EXPECT_EQ(OfToken("other"), a.value);
  table.Remove(a);
  EXPECT_EQ(OfUid(7), 0u);
  EXPECT_EQ(OfToken("other"), 0u);
}

TEST_F(TenantTableTest, ATokenDecidesBeforeAUid) {
  Add("a", {7});
  const quota::TenantId b = Add("b", {}, "secret");
  const quota::TenantId c = Add("c", {}, "another");
  EXPECT_EQ(OfToken("secret"), b.value);
  EXPECT_EQ(OfToken("another"), c.value);
  EXPECT_EQ(OfToken("wrong"), 0u);
}

}  // namespace
}  // namespace gmb::broker
