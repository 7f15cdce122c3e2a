// The audit lists what operators did, and the changes of tenants and pools that
// were refused to them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Words = std::vector<std::string>;

class AuditTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    client_ = ConnectAs("a");
    audited_ = Audit().size();
  }
  void TearDown() override {
    weights_ = Lease();
    client_.reset();
    ComponentTest::TearDown();
  }

  // Sealed under the name llm, and held.
  void ShareWeights() {
    AcquireOptions options = WaitFor(absl::Seconds(20));
    options.share_as = "llm";
    weights_ = client_->Acquire(4 * kMiB, options).value();
    EXPECT_TRUE(weights_.Seal().ok());
  }

  // Action and subject, the newest first.
  std::vector<std::pair<std::string, std::string>> Audit() const {
    const auto list = admin().ListAudit(v1::ListAuditRequest());
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<std::pair<std::string, std::string>> entries;
    if (!list.ok()) return entries;
    for (const v1::AuditEntry& entry : list->entries())
      entries.emplace_back(entry.action(), entry.subject());
    return entries;
  }
  // Those since the start of the test.
  std::vector<std::pair<std::string, std::string>> Audited() const {
    auto entries = Audit();
    entries.resize(entries.size() - audited_);
    return entries;
  }
  void ExpectRefused(const Words& words) const {
    const auto before = Audit();
    EXPECT_EQ(Gmb(words).exit_code, 1) << words[0] << " " << words[1];
    EXPECT_EQ(Audit(), before) << words[0] << " " << words[1];
  }

  std::unique_ptr<Client> client_;
  Lease weights_;
  size_t audited_ = 0;
};

TEST_F(AuditTest, AnActionThatIsRefusedIsNotListed) {
  AcquireOptions unsealed = WaitFor(absl::Seconds(20));
  unsealed.share_as = "unsealed";
  const Lease filling = client_->Acquire(4 * kMiB, unsealed).value();
  for (const Words& words :
       std::vector<Words>{{"reclaim", "nope"},
                          {"reclaim", "a", "--device", "host-7"},
                          {"lease", "drop", "--tenant", "a", "nope"},
                          {"lease", "drop", "--tenant", "a", "unsealed"},
                          {"lease", "drop", "--tenant", "nope", "llm"},
                          {"pool", "drain", "--device", "host-7"}}) {
    ExpectRefused(words);
  }
}

TEST_F(AuditTest, AChangeThatIsRefusedIsListedAsThat) {
  for (const Words& words :
       std::vector<Words>{{"tenant", "set", "a", "--guarantee", "100GiB"},
                          {"tenant", "reset", "a"},
                          {"tenant", "delete", "nope"},
                          {"tenant", "delete", "nope", "--wait", "1s"},
                          {"tenant", "delete", "a"},
                          {"pool", "resize", "100TiB", "--device", "host-0"}}) {
    EXPECT_EQ(Gmb(words).exit_code, 1) << words[1];
  }
  EXPECT_THAT(Audited(), ElementsAre(Pair("resize_pool_refused", "host-0"),
                                     Pair("delete_tenant_refused", "a"),
                                     Pair("delete_tenant_refused", "nope"),
                                     Pair("delete_tenant_refused", "nope"),
                                     Pair("reset_tenant_refused", "a"),
                                     Pair("set_tenant_refused", "a")));
  const auto list = admin().ListAudit(v1::ListAuditRequest());
  ASSERT_TRUE(list.ok());
  EXPECT_THAT(list->entries(1).detail(), HasSubstr("sessions"));
}

TEST_F(AuditTest, WhatIsDoneIsListedOnce) {
  ShareWeights();
  EXPECT_EQ(Gmb({"lease", "drop", "--tenant", "a", "llm"}).exit_code, 0);
  // The name is gone, though its writer has the lease still.
  ExpectRefused({"lease", "drop", "--tenant", "a", "llm"});
  EXPECT_EQ(Gmb({"reclaim", "a"}).exit_code, 0);
  EXPECT_EQ(Gmb({"pool", "drain"}).exit_code, 0);
  EXPECT_THAT(Audited(),
              ElementsAre(Pair("drain_pool", "host-0"), Pair("reclaim", "a"),
                          Pair("drop_lease", "a")));
}

TEST_F(AuditTest, ADeletedTenantsSessionsAreListedAsAskedToEnd) {
  const auto deletion =
      StartGmb("del", {"tenant", "delete", "a", "--wait", "60s"});
  ASSERT_TRUE(Await([&] { return Audited().size() == 1; }));
  // Once is enough.
  ExpectRefused({"tenant", "delete", "a", "--wait", "1s"});
  client_.reset();
  EXPECT_EQ(deletion->AwaitExit(), 0);
  EXPECT_THAT(Audited(), ElementsAre(Pair("delete_tenant", "a"),
                                     Pair("see_off_tenant", "a")));
}

TEST_F(AuditTest, ATenantThatStaysIsListedWithWhy) {
  EXPECT_EQ(Gmb({"tenant", "delete", "a", "--wait", "50ms"}).exit_code, 1);
  EXPECT_THAT(Audited(), ElementsAre(Pair("tenant_stays", "a"),
                                     Pair("see_off_tenant", "a")));
  const auto list = admin().ListAudit(v1::ListAuditRequest());
  ASSERT_TRUE(list.ok());
  EXPECT_THAT(list->entries(0).detail(), HasSubstr("sessions=1"));
  EXPECT_EQ(list->entries(0).operator_name(), list->entries(1).operator_name());
  EXPECT_THAT(list->entries(1).detail(), HasSubstr("wait"));
}

// It still frees what it is asked to free, and says so.
TEST_F(AuditTest, OfADrainingBrokerItListsWhatWasDoneAlone) {
  ShareWeights();
  broker().program().Signal(SIGTERM);
  ASSERT_TRUE(Await([&] { return Status().draining(); }));
  ExpectRefused({"pool", "undrain"});
  ExpectRefused({"lease", "drop", "--tenant", "a", "nope"});
  EXPECT_EQ(Gmb({"lease", "drop", "--tenant", "a", "llm"}).exit_code, 0);
  EXPECT_EQ(Gmb({"reclaim", "a"}).exit_code, 0);
  EXPECT_THAT(Audited(),
              ElementsAre(Pair("reclaim", "a"), Pair("drop_lease", "a")));
  weights_ = Lease();
  client_.reset();
  EXPECT_EQ(broker().program().AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
