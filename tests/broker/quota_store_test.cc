#include "broker/store/quota_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "broker/declared/declared.h"
#include "broker/declared/merge.h"
#include "broker/store/database.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kAt = absl::FromUnixSeconds(1'795'184'546);

AuditRecord Record(const std::string& action, const std::string& subject) {
  return {kAt, "uid 0, pid 4711 (gmb)", action, subject, "guarantee=25%"};
}

absl::Status Done() { return absl::OkStatus(); }

TenantPolicy PolicyA() {
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {Amount::Fraction(0.25), Amount::Bytes(uint64_t{60} << 30),
                  2.5};
  policy.device_quotas["GPU-1"] = {Amount::Bytes(7), Amount::Fraction(1), 1};
  policy.max_handles = 77;
  policy.max_sessions = 3;
  policy.reclaim = {.may_terminate = true,
                    .min_residency = std::chrono::milliseconds(30'001),
                    .pause_grace = std::chrono::seconds(0),
                    .host_limit = Amount::Bytes(uint64_t{8} << 30)};
  policy.uids = {0, 1000, 4'294'967'294u};
  policy.token = "a secret of sixteen bytes or more";
  return policy;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

class QuotaStoreTest : public testing::Test {
 protected:
  std::unique_ptr<QuotaStore> Open() {
    auto store = QuotaStore::Open(directory_.path());
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string File() const { return directory_ / "gmb.db"; }

  const TempDirectory directory_;
};

TEST_F(QuotaStoreTest, StartsEmptyAndForTheBrokersUserAlone) {
  const auto store = Open();
  const auto state = store->Load();
  ASSERT_TRUE(state.ok());
  EXPECT_THAT(state->tenants, IsEmpty());
  EXPECT_THAT(state->pool_targets, IsEmpty());
  struct stat info {};
  ASSERT_EQ(::stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(QuotaStoreTest, AFileThatOthersCanReadIsClosedToThem) {
  std::ofstream(File()).close();
  ASSERT_EQ(::chmod(File().c_str(), 0644), 0);
  ASSERT_NE(Open(), nullptr);
  struct stat info {};
  ASSERT_EQ(::stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(QuotaStoreTest, APolicyComesBackAsItWasPutWithoutItsToken) {
  ASSERT_TRUE(Open()->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  const auto state = Open()->Load();
  ASSERT_TRUE(state.ok());
  ASSERT_THAT(state->tenants, SizeIs(1));
  const TenantPolicy& loaded = state->tenants[0];
  EXPECT_EQ(loaded.name, "a");
  EXPECT_EQ(loaded.quota, PolicyA().quota);
  EXPECT_EQ(loaded.device_quotas, PolicyA().device_quotas);
  EXPECT_EQ(loaded.max_handles, 77u);
  EXPECT_EQ(loaded.max_sessions, 3u);
  EXPECT_EQ(loaded.reclaim, PolicyA().reclaim);
  EXPECT_THAT(loaded.uids, ElementsAre(0u, 1000u, 4'294'967'294u));
  EXPECT_EQ(loaded.token, "");
  EXPECT_EQ(ReadFile(File()).find("a secret of"), std::string::npos);
}

TEST_F(QuotaStoreTest, ASecondPutReplacesAllOfThePolicy) {
  const auto store = Open();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  TenantPolicy plain;
  plain.name = "a";
  ASSERT_TRUE(store->PutTenant(plain, Record("set_tenant", "a")).ok());
  const auto state = store->Load();
  ASSERT_THAT(state->tenants, SizeIs(1));
  EXPECT_THAT(state->tenants[0].device_quotas, IsEmpty());
  EXPECT_THAT(state->tenants[0].uids, IsEmpty());
  EXPECT_EQ(state->tenants[0].reclaim, ReclaimPolicy());
}

// As brokers of format 1 made it, with a tenant, one that was deleted, and a
// pool's target.
constexpr char kFormat1[] = R"sql(
  CREATE TABLE tenants(
    name TEXT PRIMARY KEY NOT NULL,
    deleted INTEGER NOT NULL,
    max_handles INTEGER NOT NULL,
    max_sessions INTEGER NOT NULL) STRICT;
  CREATE TABLE quotas(
    tenant TEXT NOT NULL REFERENCES tenants(name) ON DELETE CASCADE,
    device TEXT NOT NULL,
    guarantee_bytes INTEGER, guarantee_fraction REAL,
    limit_bytes INTEGER, limit_fraction REAL,
    weight REAL NOT NULL,
    PRIMARY KEY(tenant, device)) STRICT;
  CREATE TABLE uids(
    tenant TEXT NOT NULL REFERENCES tenants(name) ON DELETE CASCADE,
    uid INTEGER NOT NULL,
    PRIMARY KEY(tenant, uid)) STRICT;
  CREATE TABLE pools(
    device TEXT PRIMARY KEY NOT NULL,
    target_bytes INTEGER, target_fraction REAL) STRICT;
  CREATE TABLE audit(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns INTEGER NOT NULL,
    operator_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL) STRICT;
  INSERT INTO tenants VALUES('a', 0, 77, 3), ('gone', 1, 0, 0);
  INSERT INTO quotas VALUES('a', '', NULL, 0.25, 64, NULL, 2.5);
  INSERT INTO uids VALUES('a', 1000);
  INSERT INTO pools VALUES('host-0', 1024, NULL);
  INSERT INTO audit VALUES(7, 1, 'uid 0', 'set_tenant', 'a', 'limit=64');
  PRAGMA application_id=1735221873;
  PRAGMA user_version=1;
)sql";

TEST_F(QuotaStoreTest, ADatabaseOfFormat1KeepsAllAndGetsTheDefaultsOfReclaim) {
  std::ofstream(File()).close();
  const absl::Status made = Database::Open(File())->Execute(kFormat1);
  ASSERT_TRUE(made.ok()) << made;
  for (const char* when : {"at the upgrade", "after it"}) {
    SCOPED_TRACE(when);
    const auto store = Open();
    const auto state = store->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_THAT(state->tenants, SizeIs(1));
    const TenantPolicy& a = state->tenants[0];
    EXPECT_EQ(a.quota, (quota::TenantQuota{Amount::Fraction(0.25),
                                           Amount::Bytes(64), 2.5}));
    EXPECT_EQ(a.max_handles, 77u);
    EXPECT_THAT(a.uids, ElementsAre(1000u));
    EXPECT_EQ(a.reclaim, ReclaimPolicy());
    EXPECT_THAT(state->deleted_tenants, ElementsAre("gone"));
    EXPECT_EQ(state->pool_targets.at("host-0"), Amount::Bytes(1024));
    EXPECT_THAT(*store->ListAudit(10), SizeIs(1));
  }
  ASSERT_TRUE(Open()->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_EQ(Open()->Load()->tenants[0].reclaim, PolicyA().reclaim);
}

// Nothing says who wrote it, so it is some operator's, and the first file is put
// beneath it.
TEST_F(QuotaStoreTest,
       WhatAnOlderBrokerStoredIsTheOperatorsWhereTheFileDiffers) {
  std::ofstream(File()).close();
  ASSERT_TRUE(Database::Open(File())->Execute(kFormat1).ok());
  const auto store = Open();
  FileState file;
  file.tenants["a"] = FieldsOf(PolicyOf(
      "a", {{"guarantee", "25%"}, {"limit", "50%"}, {"uids", "1000"}}));
  file.tenants["gone"] = FieldsOf(PolicyOf("gone", {}));
  const Declared merged = MergeFile(store->GetDeclared(), file, kAt).next;
  ASSERT_TRUE(store->PutDeclared(merged, Record("apply_file", "")).ok());
  const Declared loaded = Open()->GetDeclared();
  EXPECT_EQ(loaded, store->GetDeclared());
  EXPECT_EQ(loaded.tenants, merged.tenants);
  const Subject& a = loaded.tenants.at("a");
  EXPECT_EQ(InForce(a, "limit")->value, "64");
  EXPECT_EQ(ToText(InForce(a, "limit")->source), "operator");
  EXPECT_EQ(ToText(InForce(a, "guarantee")->source), "file");
  EXPECT_EQ(ToText(InForce(a, "uids")->source), "file");
  EXPECT_EQ(ToText(a.maker), "operator");
  EXPECT_TRUE(loaded.tenants.at("gone").deleted);
}

TEST_F(QuotaStoreTest, WhatIsDeclaredComesBackAsItWasPut) {
  Declared declared;
  FileState file;
  file.tenants["a"] = FieldsOf(PolicyA());
  file.pools["GPU-1"] = {{kPoolSize, "90%"}};
  declared = MergeFile(declared, file, kAt).next;
  PutWritten("limit",
             {.value = "10%",
              .source = {Source::Writer::kApply, "web'; --"},
              .at = kAt,
              .order = declared.next_order++,
              .until = kAt + absl::Hours(2)},
             &declared.tenants["a"]);
  ASSERT_TRUE(Open()->PutDeclared(declared, Record("apply_file", "")).ok());
  EXPECT_EQ(Open()->GetDeclared(), declared);
  declared.tenants.erase("a");
  ASSERT_TRUE(Open()->PutDeclared(declared, Record("apply_file", "")).ok());
  ++declared.next_order;
  EXPECT_EQ(Open()->GetDeclared(), declared);
}

// An operator who looked before it is told so.
TEST_F(QuotaStoreTest, EachChangeRaisesTheRevisionAndNothingElseDoes) {
  const auto store = Open();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  uint64_t before = store->Shown()->next_order;
  ASSERT_TRUE(store->DeleteTenant("a", Record("delete_tenant", "a")).ok());
  EXPECT_GT(store->Shown()->next_order, before);
  before = store->Shown()->next_order;
  Declared forgotten = store->GetDeclared();
  Forget("a", &forgotten);
  store->HoldDeclared(forgotten);
  EXPECT_GT(store->Shown()->next_order, before);
  before = store->Shown()->next_order;
  ASSERT_TRUE(
      store->PutDeclared(store->GetDeclared(), Record("apply_file", "")).ok());
  EXPECT_EQ(store->Shown()->next_order, before);
  EXPECT_EQ(Open()->GetDeclared().next_order, before);
}

// The next change that the disk takes brings it there.
TEST_F(QuotaStoreTest, WhatIsHeldGoesToTheDiskWithTheNextChange) {
  FileState file;
  file.tenants["b"] = FieldsOf(PolicyOf("b", {}));
  const auto store = Open();
  store->HoldDeclared(MergeFile({}, file, kAt).next);
  EXPECT_THAT(store->Load()->tenants, SizeIs(1));
  EXPECT_THAT(Open()->Load()->tenants, IsEmpty());
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_THAT(Open()->Load()->tenants, SizeIs(2));
}

TEST_F(QuotaStoreTest, WhatATenantHadBeforeItsLastChangeIsKept) {
  TenantPolicy smaller = PolicyA();
  smaller.quota.limit = Amount::Fraction(0.5);
  {
    const auto store = Open();
    ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
    ASSERT_TRUE(store->PutTenant(smaller, Record("set_tenant", "a")).ok());
    // As long as the disk takes nothing, the broker alone knows it.
    Declared held = store->GetDeclared();
    WriteFields("a", FieldsOf(PolicyOf("a", {})), {}, kAt, &held);
    store->HoldDeclared(held);
    EXPECT_EQ(store->GetDeclared().tenants["a"].former, FieldsOf(smaller));
  }
  EXPECT_EQ(Open()->GetDeclared().tenants["a"].former, FieldsOf(PolicyA()));
  // As the broker before this one left it: it knew no former values.
  ASSERT_TRUE(Database::Open(File())->Execute("DROP TABLE former").ok());
  const auto store = Open();
  EXPECT_THAT(store->GetDeclared().tenants["a"].former, IsEmpty());
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_EQ(Open()->GetDeclared().tenants["a"].former, FieldsOf(smaller));
}

// It removes a tenant's row and writes it anew.
TEST_F(QuotaStoreTest, ATenantThatAnOlderBrokerChangesLosesItsFormerValues) {
  {
    const auto store = Open();
    ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
    TenantPolicy heavy = PolicyA();
    heavy.quota.weight = 9;
    ASSERT_TRUE(store->PutTenant(heavy, Record("set_tenant", "a")).ok());
  }
  absl::StatusOr<Database> older = Database::Open(File());
  ASSERT_TRUE(older
                  ->Execute("PRAGMA foreign_keys=ON; DELETE FROM subjects "
                            "WHERE name = 'a'")
                  .ok());
  EXPECT_EQ(*older->QueryInt("SELECT COUNT(*) FROM former"), 0);
}

TEST_F(QuotaStoreTest, AnUpgradeThatFailsChangesNothing) {
  std::ofstream(File()).close();
  const absl::Status made = Database::Open(File())->Execute(kFormat1);
  ASSERT_TRUE(made.ok()) << made;
  // The last of the new columns is there already, so that adding it fails.
  ASSERT_TRUE(Database::Open(File())
                  ->Execute("ALTER TABLE tenants ADD COLUMN "
                            "host_limit_fraction REAL")
                  .ok());
  EXPECT_FALSE(QuotaStore::Open(directory_.path()).ok());
  EXPECT_EQ(*Database::Open(File())->QueryInt("PRAGMA user_version"), 1);
  EXPECT_EQ(*Database::Open(File())->QueryInt(
                "SELECT COUNT(*) FROM pragma_table_info('tenants')"),
            5);
}

TEST_F(QuotaStoreTest, ADeletedTenantIsRememberedUntilItIsSetAgain) {
  const auto store = Open();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  ASSERT_TRUE(store->DeleteTenant("a", Record("delete_tenant", "a")).ok());
  ASSERT_TRUE(
      store->DeleteTenant("only-in-the-file", Record("delete_tenant", "b"))
          .ok());
  EXPECT_THAT(store->Load()->tenants, IsEmpty());
  EXPECT_THAT(store->Load()->deleted_tenants,
              ElementsAre("a", "only-in-the-file"));
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_THAT(store->Load()->tenants, SizeIs(1));
  EXPECT_THAT(store->Load()->deleted_tenants, ElementsAre("only-in-the-file"));
}

TEST_F(QuotaStoreTest, PoolTargetsComeBack) {
  const auto store = Open();
  ASSERT_TRUE(store
                  ->PutPoolTarget("GPU-1", Amount::Fraction(0.9),
                                  Record("resize_pool", "GPU-1"))
                  .ok());
  ASSERT_TRUE(store
                  ->PutPoolTarget("host-0", Amount::Bytes(1 << 30),
                                  Record("resize_pool", "host-0"))
                  .ok());
  ASSERT_TRUE(store
                  ->PutPoolTarget("host-0", Amount::Bytes(2 << 20),
                                  Record("resize_pool", "host-0"))
                  .ok());
  const auto state = Open()->Load();
  EXPECT_EQ(state->pool_targets.at("GPU-1"), Amount::Fraction(0.9));
  EXPECT_EQ(state->pool_targets.at("host-0"), Amount::Bytes(2 << 20));
}

TEST_F(QuotaStoreTest, TheAuditLogIsNewestFirstAndOutlivesTheBroker) {
  {
    const auto store = Open();
    ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
    ASSERT_TRUE(store->Audit(Record("drain_pool", "host-0"), Done).ok());
    ASSERT_TRUE(store->DeleteTenant("a", Record("delete_tenant", "a")).ok());
  }
  const auto store = Open();
  const auto all = store->ListAudit(100);
  ASSERT_TRUE(all.ok());
  ASSERT_THAT(*all, SizeIs(3));
  EXPECT_EQ((*all)[0].action, "delete_tenant");
  EXPECT_EQ((*all)[2].action, "set_tenant");
  EXPECT_EQ((*all)[2].at, kAt);
  EXPECT_EQ((*all)[2].operator_name, "uid 0, pid 4711 (gmb)");
  EXPECT_EQ((*all)[2].detail, "guarantee=25%");
  EXPECT_THAT(*store->ListAudit(1), SizeIs(1));
}

TEST_F(QuotaStoreTest, WhatIsRefusedIsWrittenFirstAndTakenOutAgain) {
  const auto store = Open();
  const auto actions = [&] {
    std::vector<std::string> list;
    const auto records = store->ListAudit(10);
    if (!records.ok()) return list;
    for (const AuditRecord& record : *records) list.push_back(record.action);
    return list;
  };
  ASSERT_TRUE(store->Audit(Record("drain_pool", "host-0"), Done).ok());
  const absl::Status refused = store->Audit(Record("reclaim", "a"), [&] {
    EXPECT_THAT(actions(), ElementsAre("reclaim", "drain_pool"));
    return absl::NotFoundError("no such tenant");
  });
  EXPECT_EQ(refused, absl::NotFoundError("no such tenant"));
  EXPECT_THAT(actions(), ElementsAre("drain_pool"));
  ASSERT_TRUE(store->Audit(Record("drop_lease", "a"), Done).ok());
  EXPECT_THAT(actions(), ElementsAre("drop_lease", "drain_pool"));
}

TEST_F(QuotaStoreTest, OfATenantThoseAreListedTooThatChangedSeveral) {
  const auto store = Open();
  const auto put = [&](const std::string& action, const std::string& subject,
                       const std::string& detail) {
    AuditRecord record = Record(action, subject);
    record.detail = detail;
    ASSERT_TRUE(store->Audit(record, Done).ok());
  };
  put("apply_file", "", "tenant web is new: limit 50%; web2: weight 1 -> 2");
  put("apply", "blue", "batch: limit 1% -> 2%; web: limit 50% -> 60%");
  put("override_ended", "", "myweb: weight 1 -> 2; web-a: weight 1 -> 2");
  put("apply_refused", "blue", "web: is declared by the file");
  put("set_tenant", "web", "web: weight 1 -> 2");
  const auto of_web = store->ListAudit(
      10, 0, {.since = absl::InfinitePast(), .subject = "web"});
  ASSERT_TRUE(of_web.ok()) << of_web.status();
  ASSERT_THAT(*of_web, SizeIs(3));
  EXPECT_EQ((*of_web)[0].action, "set_tenant");
  EXPECT_EQ((*of_web)[1].action, "apply");
  EXPECT_EQ((*of_web)[2].action, "apply_file");
}

// The list is kept by the records' numbers.
TEST_F(QuotaStoreTest, WhatIsRefusedDoesNotShortenTheAuditLog) {
  const auto store = Open();
  ASSERT_TRUE(store->Audit(Record("drain_pool", "host-0"), Done).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(store
                     ->Audit(Record("reclaim", "a"),
                             [] { return absl::NotFoundError("none"); })
                     .ok());
  }
  ASSERT_TRUE(store->Audit(Record("drop_lease", "a"), Done).ok());
  auto database = Database::Open(File());
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ(*database->QueryInt("SELECT MAX(id) FROM audit"), 2);
}

TEST_F(QuotaStoreTest, AnyBytesAreStoredAsDataNotAsSql) {
  const auto store = Open();
  AuditRecord record = Record("set_tenant", "a'); DROP TABLE audit; --");
  record.detail = std::string(10'000, '\xff') + "\n";
  ASSERT_TRUE(store->Audit(record, Done).ok());
  const auto all = store->ListAudit(10);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)[0].subject, record.subject);
  EXPECT_EQ((*all)[0].detail, record.detail);
}

TEST_F(QuotaStoreTest, AnAmountBeyond63BitsIsRefusedAndNothingChanges) {
  const auto store = Open();
  TenantPolicy policy = PolicyA();
  policy.quota.limit = Amount::Bytes(uint64_t{1} << 63);
  EXPECT_EQ(store->PutTenant(policy, Record("set_tenant", "a")).code(),
            absl::StatusCode::kInvalidArgument);
  policy = PolicyA();
  policy.reclaim.host_limit = Amount::Bytes(uint64_t{1} << 63);
  EXPECT_EQ(store->PutTenant(policy, Record("set_tenant", "a")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(store->Load()->tenants, IsEmpty());
  EXPECT_THAT(*store->ListAudit(10), IsEmpty());
}

TEST_F(QuotaStoreTest, ThreadsTakeTurns) {
  const auto store = Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&store, t] {
      TenantPolicy policy;
      policy.name = std::to_string(t);
      for (uint32_t i = 0; i < 10; ++i) {
        policy.max_handles = 1 + i;
        EXPECT_TRUE(
            store->PutTenant(policy, Record("set_tenant", policy.name)).ok());
        EXPECT_TRUE(store->Load().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(store->Load()->tenants, SizeIs(4));
  EXPECT_THAT(*store->ListAudit(100), SizeIs(40));
}

TEST_F(QuotaStoreTest, AChangeThatChangesNothingIsNotWritten) {
  const auto store = Open();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  const Declared before = store->GetDeclared();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_EQ(store->GetDeclared(), before);
  EXPECT_THAT(*store->ListAudit(100), SizeIs(1));
}

TEST_F(QuotaStoreTest,
       ADamagedDatabaseIsRefusedLeftAloneAndKeptAsideOnRequest) {
  ASSERT_TRUE(Open()->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  std::string bytes = ReadFile(File());
  for (size_t i = 100; i < bytes.size(); i += 3) bytes[i] = '\x5a';
  std::ofstream(File(), std::ios::binary) << bytes;

  const auto refused = QuotaStore::Open(directory_.path());
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kDataLoss)
      << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr(File()), HasSubstr("--fresh-state")));
  EXPECT_EQ(ReadFile(File()), bytes);

  const auto aside = QuotaStore::SetAside(directory_.path(), kAt);
  ASSERT_TRUE(aside.ok()) << aside.status();
  EXPECT_EQ(*aside, File() + ".corrupt-20261120T142226.000000Z");
  EXPECT_EQ(ReadFile(*aside), bytes);
  EXPECT_THAT(Open()->Load()->tenants, IsEmpty());
}

TEST_F(QuotaStoreTest, AChangeIsInForceAlsoWhereTheCountOfWritesIsLost) {
  Declared declared;
  Subject& a = declared.tenants["a"];
  a.maker = {Source::Writer::kApply, "web"};
  PutWritten("limit", {.value = "99%", .source = a.maker, .order = 40}, &a);
  ASSERT_TRUE(Open()->PutDeclared(declared, Record("apply", "a")).ok());
  ASSERT_TRUE(Database::Open(File())->Execute("DELETE FROM declared").ok());

  const auto store = Open();
  ASSERT_TRUE(store->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  EXPECT_EQ(store->Load()->tenants.at(0).quota.limit, PolicyA().quota.limit);

  ASSERT_TRUE(
      Database::Open(File())->Execute("UPDATE fields SET written=-1").ok());
  const auto refused = QuotaStore::Open(directory_.path());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      std::string(refused.status().message()),
      AllOf(HasSubstr("--fresh-state"), HasSubstr("write of number -1")));
}

TEST_F(QuotaStoreTest, SettingAsideNeverOverwrites) {
  std::ofstream(File()) << "one";
  const std::string aside = *QuotaStore::SetAside(directory_.path(), kAt);
  std::ofstream(File()) << "two";
  EXPECT_FALSE(QuotaStore::SetAside(directory_.path(), kAt).ok());
  EXPECT_EQ(ReadFile(aside), "one");
  EXPECT_EQ(ReadFile(File()), "two");
}

TEST_F(QuotaStoreTest, AnyBytesForADatabaseAreAnErrorOrAWorkingStore) {
  ASSERT_TRUE(Open()->PutTenant(PolicyA(), Record("set_tenant", "a")).ok());
  const std::string good = ReadFile(File());
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    for (uint64_t n = random() % 64; n > 0 && !bytes.empty(); --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    std::filesystem::remove(File() + "-journal");
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << bytes;
    const auto store = QuotaStore::Open(directory_.path());
    if (!store.ok()) {
      EXPECT_FALSE(store.status().message().empty());
      continue;
    }
    (*store)->Load().status().IgnoreError();
    (*store)->ListAudit(10).status().IgnoreError();
  }
}

TEST_F(QuotaStoreTest, AnotherProgramsDatabaseAndANewerOneAreRefused) {
  std::ofstream(File()) << "this is not a database, but it is more than a "
                           "hundred bytes long, which is "
                           "what the header of one takes up";
  EXPECT_EQ(QuotaStore::Open(directory_.path()).status().code(),
            absl::StatusCode::kDataLoss);
  std::filesystem::remove(File());
  {
    std::ofstream(File()).close();
    auto database = Database::Open(File());
    ASSERT_TRUE(database->Execute("CREATE TABLE x(y)").ok());
  }
  EXPECT_EQ(QuotaStore::Open(directory_.path()).status().code(),
            absl::StatusCode::kDataLoss);
  std::filesystem::remove(File());
  ASSERT_NE(Open(), nullptr);
  ASSERT_TRUE(Database::Open(File())->Execute("PRAGMA user_version=4").ok());
  EXPECT_EQ(QuotaStore::Open(directory_.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(QuotaStoreTest, MissingDirectoriesAndLinksAreErrors) {
  EXPECT_EQ(QuotaStore::Open(directory_ / "none").status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_EQ(::symlink((directory_ / "elsewhere").c_str(), File().c_str()), 0);
  EXPECT_FALSE(QuotaStore::Open(directory_.path()).ok());
  EXPECT_NE(::access((directory_ / "elsewhere").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace gmb::broker
