// The disk fails when all is on it, and cannot be read then either: what was
// refused is taken out of it later, and the audit log says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "broker/declared/merge.h"
#include "broker/store/quota_store.h"
#include "tests/broker/faulty_disk.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOperator[] = "uid 0, pid 4711 (gmb)";

AuditRecord Did(const std::string& action, const std::string& subject = "a") {
  return {absl::UnixEpoch(), kOperator, action, subject, ""};
}

TenantPolicy Policy(const std::string& name, uint64_t limit) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota.limit = quota::Amount::Bytes(limit);
  return policy;
}

class QuotaStoreDoubtTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstallAll();
    TheDisk() = {};
    Open();
    ASSERT_TRUE(store_->PutTenant(Policy("a", 1), Did("make")).ok());
  }
  void TearDown() override { UninstallAll(); }

  void Open() {
    store_.reset();
    auto store = QuotaStore::Open(directory_.path());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // The last step of each commit fails from now on, after which all is on the
  // disk; with `unreadable` nothing can be read then.
  static void Break(bool unreadable = true) {
    TheDisk() = {.call = Call::kSyncDirectory,
                 .last = UINT64_MAX,
                 .then_unreadable = unreadable};
  }
  static void Mend() { TheDisk() = {}; }
  // As after a death at this moment.
  [[nodiscard]] Declared OnDisk() const {
    const auto store = QuotaStore::Open(directory_.path());
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? (*store)->GetDeclared() : Declared();
  }
  [[nodiscard]] static std::vector<std::string> ActionsOf(QuotaStore* store) {
    const auto records = store->ListAudit(10);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<std::string> actions;
    if (!records.ok()) return actions;
    for (const AuditRecord& record : *records) actions.push_back(record.action);
    return actions;
  }
  [[nodiscard]] std::vector<std::string> Actions() {
    return ActionsOf(store_.get());
  }

  const QuickDirectory directory_;
  std::unique_ptr<QuotaStore> store_;
};

// It is taken out again when somebody looks at the store later, or stops the
// broker in order.
TEST_F(QuotaStoreDoubtTest, ARefusedChangeThatIsOnTheDiskIsTakenBack) {
  using Use = void (*)(QuotaStore*);
  const std::array<Use, 5> uses = {
      [](QuotaStore* store) { EXPECT_TRUE(store->CheckDisk().ok()); },
      [](QuotaStore* store) { EXPECT_TRUE(store->ListAudit(1).ok()); },
      [](QuotaStore* store) {
        const auto nothing = [] { return absl::OkStatus(); };
        EXPECT_TRUE(store->Audit(Did("drain"), nothing).ok());
      },
      [](QuotaStore* store) {
        EXPECT_TRUE(store->PutTenant(Policy("c", 3), Did("make", "c")).ok());
        EXPECT_TRUE(store->DeleteTenant("c", Did("delete", "c")).ok());
      },
      nullptr};  // an orderly stop
  const auto tenants = [](const Declared& declared) {
    return InForce(declared).tenants;
  };
  for (const Use use : uses) {
    const Declared before = store_->GetDeclared();
    Break();
    EXPECT_FALSE(store_->PutTenant(Policy("b", 2), Did("make", "b")).ok());
    Mend();
    EXPECT_FALSE(OnDisk() == before) << "it came to nothing";
    if (use != nullptr) {
      use(store_.get());
    } else {
      store_.reset();
    }
    EXPECT_EQ(tenants(OnDisk()), tenants(before));
    if (use == nullptr) Open();
  }
}

TEST_F(QuotaStoreDoubtTest, TheAuditLogSaysThatItWasTakenBack) {
  Break();
  EXPECT_FALSE(store_->PutTenant(Policy("a", 2), Did("set_tenant")).ok());
  Mend();
  const absl::Time before = absl::Now();
  EXPECT_THAT(Actions(),
              ElementsAre("set_tenant_taken_back", "set_tenant", "make"));
  const AuditRecord record = store_->ListAudit(1)->front();
  EXPECT_EQ(record.subject, "a");
  EXPECT_EQ(record.operator_name, "gmbd");
  EXPECT_GE(record.at, before - absl::Hours(1));
  EXPECT_THAT(record.detail, HasSubstr("a: limit 2 -> 1;"));
  EXPECT_THAT(record.detail, HasSubstr(kOperator));
  // Once.
  EXPECT_TRUE(store_->CheckDisk().ok());
  Open();
  EXPECT_THAT(Actions(),
              ElementsAre("set_tenant_taken_back", "set_tenant", "make"));
}

// These name their tenants in the detail.
TEST_F(QuotaStoreDoubtTest, ThatIsListedForEachTenantThatItChanged) {
  const std::vector<std::string> actions = {"apply", "apply_file",
                                            "override_ended"};
  for (const std::string& action : actions) {
    Declared next = store_->GetDeclared();
    WriteFields("b", FieldsOf(Policy("b", 2)), {}, absl::UnixEpoch(), &next);
    AuditRecord audit = Did(action, "web");
    audit.detail = "tenant b is new: limit 2 B";
    Break();
    EXPECT_FALSE(store_->PutDeclared(next, audit).ok());
    Mend();
    const auto of_b = store_->ListAudit(2, 0, {absl::InfinitePast(), "b"});
    ASSERT_TRUE(of_b.ok());
    ASSERT_EQ(of_b->size(), 2U);
    EXPECT_EQ((*of_b)[0].action, action + "_taken_back");
    EXPECT_THAT((*of_b)[0].detail, HasSubstr("tenant b is gone"));
    EXPECT_EQ((*of_b)[1].action, action);
  }
}

// The broker that was killed meanwhile has a successor with the change.
TEST_F(QuotaStoreDoubtTest, WhatTheNextBrokerFindsIsTrue) {
  Break();
  EXPECT_FALSE(store_->PutTenant(Policy("a", 2), Did("set_tenant")).ok());
  Mend();
  const auto next = *QuotaStore::Open(directory_.path());
  EXPECT_THAT(ActionsOf(next.get()), ElementsAre("set_tenant", "make"));
  EXPECT_EQ(next->Load()->tenants[0].quota.limit, quota::Amount::Bytes(2));
}

// It can be read again, and not be written.
TEST_F(QuotaStoreDoubtTest, UntilThenItIsListedAsRefused) {
  Break();
  EXPECT_FALSE(store_->PutTenant(Policy("a", 2), Did("set_tenant")).ok());
  TheDisk() = {.call = Call::kWrite, .error = ENOSPC, .last = UINT64_MAX};
  EXPECT_THAT(Actions(), ElementsAre("set_tenant_refused", "make"));
  EXPECT_FALSE(store_->PutTenant(Policy("c", 3), Did("make", "c")).ok());
  Mend();
  EXPECT_THAT(Actions(),
              ElementsAre("set_tenant_taken_back", "set_tenant", "make"));
}

// It holds although the disk does not take it, so that it is true.
TEST_F(QuotaStoreDoubtTest, WhatIsHeldAllTheSameIsNotTakenBack) {
  Declared next = store_->GetDeclared();
  WriteFields("a", FieldsOf(Policy("a", 2)), {}, absl::UnixEpoch(), &next);
  Break();
  EXPECT_FALSE(store_->PutDeclared(next, Did("override_ended")).ok());
  store_->HoldDeclared(next);
  Mend();
  EXPECT_THAT(Actions(), ElementsAre("override_ended", "make"));
  EXPECT_EQ(OnDisk(), store_->GetDeclared());
  EXPECT_TRUE(store_->PutTenant(Policy("b", 2), Did("make", "b")).ok());
  EXPECT_EQ(OnDisk(), store_->GetDeclared());
}

TEST_F(QuotaStoreDoubtTest, TheRecordOfARefusedActionIsTakenOut) {
  int acted = 0;
  const auto act = [&acted] {
    ++acted;
    return absl::OkStatus();
  };
  Break();
  EXPECT_FALSE(store_->Audit(Did("drop_lease"), act).ok());
  EXPECT_EQ(acted, 0);
  Mend();
  EXPECT_THAT(ActionsOf(QuotaStore::Open(directory_.path())->get()),
              ElementsAre("drop_lease", "make"))
      << "it came to nothing";
  EXPECT_THAT(Actions(), ElementsAre("make"));
  EXPECT_TRUE(store_->Audit(Did("drain"), act).ok());
  EXPECT_THAT(Actions(), ElementsAre("drain", "make"));
}

// The broker refuses it, and the disk has failed since it has the record.
TEST_F(QuotaStoreDoubtTest, AndOnceTheDiskLetsItBe) {
  const absl::Status refused = store_->Audit(Did("drop_lease"), [] {
    TheDisk() = {.call = Call::kWrite, .error = ENOSPC, .last = UINT64_MAX};
    return absl::NotFoundError("no such lease");
  });
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Actions(), ElementsAre("drop_lease_refused", "make"));
  Mend();
  EXPECT_THAT(Actions(), ElementsAre("make"));
}

// As a change in this case, it is there for the next start.
TEST_F(QuotaStoreDoubtTest, AnActionWhoseRecordIsOnTheDiskIsDone) {
  int acted = 0;
  Break(/*unreadable=*/false);
  const absl::Status done = store_->Audit(Did("drop_lease"), [&acted] {
    ++acted;
    return absl::OkStatus();
  });
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(acted, 1);
  Mend();
  EXPECT_THAT(Actions(), ElementsAre("drop_lease", "make"));
}

}  // namespace
}  // namespace gmb::broker
