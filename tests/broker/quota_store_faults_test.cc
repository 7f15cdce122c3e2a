// The disk fails at the k-th call that SQLite makes to it, and from there on:
// what is said to be done is on the disk, and what is not is not.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/store/quota_store.h"
#include "tests/broker/faulty_disk.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

AuditRecord Did(const std::string& action) {
  return {absl::UnixEpoch(), "uid 0, pid 4711 (gmb)", action, "a", ""};
}

TenantPolicy Policy(const std::string& name, uint64_t limit) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota.limit = quota::Amount::Bytes(limit);
  return policy;
}

class QuotaStoreFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstallAll();
    TheDisk() = {};
    const auto store = QuotaStore::Open(directory_.path());
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->PutTenant(Policy("a", 1), Did("make")).ok());
  }
  void TearDown() override { UninstallAll(); }

  // Whether a change made a k-th call.
  bool ChangeOnce(Call call, int error, uint64_t k, bool all) {
    const QuickDirectory copy;
    std::filesystem::copy_file(directory_.Database(), copy.Database());
    auto store = *QuotaStore::Open(copy.path());
    const Declared before = store->GetDeclared();
    TheDisk() = {
        .call = call, .error = error, .first = k, .last = all ? UINT64_MAX : k};
    const absl::Status put = store->PutTenant(Policy("b", 2), Did("make"));
    const uint64_t calls = TheDisk().calls;
    refused_ += put.ok() ? 0 : 1;
    // Acts of operators in trouble are done, once.
    int acted = 0;
    const absl::Status audited = store->Audit(
        Did("drain"),
        [&] {
          ++acted;
          return absl::OkStatus();
        },
        QuotaStore::OnBadDisk::kActAnyway);
    EXPECT_TRUE(audited.ok()) << audited;
    EXPECT_EQ(acted, 1);
    TheDisk().last = 0;
    const Declared said = store->GetDeclared();
    EXPECT_EQ(said == before, !put.ok()) << put;
    // As after a death at this moment, and then with one change more.
    EXPECT_TRUE(OnDisk(copy.path()) == said) << put;
    const absl::Status next = store->PutTenant(Policy("b", 3), Did("set"));
    EXPECT_TRUE(next.ok()) << next;
    EXPECT_TRUE(store->PutTenant(Policy("c", 4), Did("make")).ok());
    EXPECT_TRUE(OnDisk(copy.path()) == store->GetDeclared());
    return k <= calls;
  }

  void Sweep(Call call, int error) {
    for (const bool all : {false, true}) {
      const size_t fds = testing::OpenFds();
      uint64_t k = 1;
      for (bool had_it = true; had_it && k < 100; ++k) {
        SCOPED_TRACE(absl::StrCat("errno ", error, ", call ", k,
                                  all ? " and all after it" : ""));
        had_it = ChangeOnce(call, error, k, all);
        if (HasFailure()) return;
      }
      EXPECT_GT(k, 2U) << "there are no such calls";
      EXPECT_EQ(testing::OpenFds(), fds);
    }
  }

  static Declared OnDisk(const std::string& directory) {
    const auto store = QuotaStore::Open(directory);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? (*store)->GetDeclared() : Declared();
  }

  const QuickDirectory directory_;
  uint64_t refused_ = 0;
};

TEST_F(QuotaStoreFaultsTest, ADiskThatIsFull) {
  Sweep(Call::kWrite, ENOSPC);
  EXPECT_GT(refused_, 4U);
}

TEST_F(QuotaStoreFaultsTest, ADiskThatIsReadOnlyOrHasNoFdForIt) {
  Sweep(Call::kOpen, EROFS);
  EXPECT_GT(refused_, 1U);
  Sweep(Call::kOpen, EMFILE);
}

TEST_F(QuotaStoreFaultsTest, ADiskThatIsBroken) {
  Sweep(Call::kWrite, EIO);
  Sweep(Call::kUnlink, EIO);
  EXPECT_GT(refused_, 4U);
}

// The last step, after which all is on the disk.
TEST_F(QuotaStoreFaultsTest, ADirectoryThatCanNotBeSynced) {
  Sweep(Call::kSyncDirectory, EIO);
}

}  // namespace
}  // namespace gmb::broker
