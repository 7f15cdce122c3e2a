// Databases with rows of any contents, and with bytes that others wrote: they
// are refused, or what is read is what the next start reads, and takes changes.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/store/database.h"
#include "broker/store/quota_store.h"
#include "broker/usage/usage_store.h"
#include "tests/broker/temp_directory.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using broker::AuditRecord;
using broker::Database;
using broker::Declared;
using broker::QuotaStore;
using broker::Statement;
using broker::TenantPolicy;
using broker::Usage;
using broker::UsageKey;
using broker::UsageStore;

// Memory: each commit waits for the disk otherwise.
constexpr char kMemoryDisk[] = "/dev/shm";
const char* const kKinds[] = {"tenant", "pool", "guest"};
const char* const kFields[] = {
    "guarantee",     "limit",         "weight",      "max_handles",
    "max_sessions",  "may_terminate", "pause_grace", "min_residency",
    "host_limit",    "uids",          "size",        "devices/GPU-1/limit",
    "devices/limit", "devices//limit"};
const char* const kStatements[] = {"DROP TABLE declared",
                                   "DROP TABLE former",
                                   "DROP TABLE audit",
                                   "DROP TABLE fields",
                                   "CREATE TABLE more(a)",
                                   "DELETE FROM declared",
                                   "ALTER TABLE fields DROP COLUMN until_ns",
                                   "PRAGMA encoding='UTF-16'",
                                   "CREATE VIEW v AS SELECT * FROM subjects"};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A new database as the broker makes it.
template <typename Open>
std::string NewDatabase(const char* name, Open open) {
  const broker::TempDirectory directory(kMemoryDisk);
  open(directory.path());
  return ReadFile(directory / name);
}

// A text that is one of the usual ones, or any.
template <typename Words>
std::string SomeWord(Input* input, const Words& words) {
  const size_t which = input->Byte();
  return which < std::size(words) ? words[which] : input->ShortText();
}
std::string SomeName(Input* input) {
  return SomeWord(input, std::vector<std::string>{"a", "b", "GPU-1"});
}
int64_t SomeNumber(Input* input) {
  const uint8_t how = input->Byte();
  return how < 250 ? how : input->Number<int64_t>();
}

void PutSubjectRow(Input* input, Database* database) {
  Statement put(database,
                "INSERT OR REPLACE INTO subjects VALUES(?,?,?,?,?,?)");
  put.Bind(SomeWord(input, kKinds)).Bind(SomeName(input));
  put.Bind(SomeNumber(input)).Bind(SomeName(input));
  put.Bind(SomeNumber(input)).Bind(SomeNumber(input)).Run().IgnoreError();
}
void PutFieldRow(Input* input, Database* database) {
  Statement put(database,
                "INSERT OR REPLACE INTO fields VALUES(?,?,?,?,?,?,?,?,?)");
  put.Bind(SomeWord(input, kKinds)).Bind(SomeName(input));
  put.Bind(SomeWord(input, kFields)).Bind(SomeNumber(input));
  put.Bind(SomeName(input)).Bind(input->ShortText());
  put.Bind(SomeNumber(input)).Bind(SomeNumber(input));
  if (input->Flag()) {
    put.BindNull();
  } else {
    put.Bind(SomeNumber(input));
  }
  put.Run().IgnoreError();
}
void PutFormerRow(Input* input, Database* database) {
  Statement put(database, "INSERT OR REPLACE INTO former VALUES(?,?,?,?)");
  put.Bind(SomeWord(input, kKinds)).Bind(SomeName(input));
  put.Bind(SomeWord(input, kFields)).Bind(input->ShortText());
  put.Run().IgnoreError();
}
void PutOtherRow(Input* input, Database* database) {
  if (input->Flag()) {
    Statement put(database, "INSERT INTO declared VALUES(?,?)");
    return put.Bind(SomeNumber(input))
        .Bind(SomeNumber(input))
        .Run()
        .IgnoreError();
  }
  Statement put(database, "INSERT INTO audit VALUES(?,?,?,?,?,?)");
  put.Bind(SomeNumber(input)).Bind(SomeNumber(input));
  for (int text = 0; text < 4; ++text) put.Bind(input->ShortText());
  put.Run().IgnoreError();
}
void PutUsageRow(Input* input, Database* database) {
  Statement put(database,
                "INSERT OR REPLACE INTO usage VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  put.Bind(SomeNumber(input)).Bind(SomeName(input)).Bind(SomeName(input));
  put.Bind(SomeNumber(input)).Bind(static_cast<double>(SomeNumber(input)));
  for (int number = 0; number < 6; ++number) put.Bind(SomeNumber(input));
  put.Run().IgnoreError();
}

// Anything that somebody could have done to the file. Whether its bytes were
// changed past SQLite, so that nothing is known of what it says.
bool Spoil(Input* input, const std::string& path) {
  {
    auto opened = Database::Open(path);
    if (!opened.ok()) return false;
    Database database = *std::move(opened);
    const auto run = [&](const std::string& sql) {
      database.Execute(sql.c_str()).IgnoreError();
    };
    run("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN");
    for (size_t rows = input->Below(24); rows > 0; --rows) {
      const size_t kind = input->Below(16);
      if (kind < 4) PutSubjectRow(input, &database);
      if (kind >= 4 && kind < 9) PutFieldRow(input, &database);
      if (kind == 9) PutFormerRow(input, &database);
      if (kind == 10) PutOtherRow(input, &database);
      if (kind == 11) run(absl::StrCat("PRAGMA user_version=", input->Byte()));
      if (kind == 12) run(kStatements[input->Below(std::size(kStatements))]);
      if (kind > 12) PutUsageRow(input, &database);
    }
    run("COMMIT");
  }
  if (input->empty() || !input->Flag()) return false;
  std::string bytes = ReadFile(path);
  while (!input->empty() && !bytes.empty()) {
    const size_t at = input->Number<uint32_t>() % bytes.size();
    const std::string patch = input->ShortText();
    bytes.replace(at, patch.size(), patch);
  }
  WriteFile(path, bytes);
  return true;
}

// The values that the next start finds.
Declared NextStart(const std::string& directory) {
  const auto store = QuotaStore::Open(directory);
  Require(store.ok(), "what was opened is opened again");
  return (*store)->GetDeclared();
}

void CheckChanges(QuotaStore* store, TenantPolicy policy) {
  const AuditRecord audit{.at = absl::FromUnixSeconds(1'800'000'000),
                          .operator_name = "fuzz",
                          .action = "set_tenant",
                          .subject = policy.name,
                          .detail = "fuzz"};
  const Declared before = store->GetDeclared();
  const absl::Status put = store->PutTenant(policy, audit);
  const Declared after = store->GetDeclared();
  if (!put.ok()) {
    Require(after == before, "a change that fails changes nothing");
    return;
  }
  const broker::StoredState state = broker::InForce(after);
  const auto is = std::find_if(
      state.tenants.begin(), state.tenants.end(),
      [&](const TenantPolicy& tenant) { return tenant.name == policy.name; });
  Require(is != state.tenants.end() && is->quota == policy.quota &&
              is->max_sessions == policy.max_sessions,
          "an operator's change is in force");
  (void)store->PutPoolTarget("GPU-1", quota::Amount::Bytes(4096), audit);
  (void)store->DeleteTenant("b", audit);
  const auto listed = store->ListAudit(100);
  Require(!listed.ok() || listed->size() <= 100, "a page is bounded");
}

void FuzzQuotas(Input* input) {
  static const std::string empty = NewDatabase("gmb.db", [](const auto& path) {
    Require(QuotaStore::Open(path).ok(), "a new database can be made");
  });
  const broker::TempDirectory directory(kMemoryDisk);
  WriteFile(directory / "gmb.db", empty);
  TenantPolicy policy;
  policy.name = input->Flag() ? "a" : "c";
  policy.quota.limit = quota::Amount::Bytes(input->Byte());
  policy.max_sessions = input->Byte();
  const bool patched = Spoil(input, directory / "gmb.db");
  Declared at_the_end;
  {
    const auto store = QuotaStore::Open(directory.path());
    if (!store.ok())
      return Require(!store.status().message().empty(), "a refusal says why");
    const Declared first = (*store)->GetDeclared();
    if (patched) {
      (void)(*store)->PutTenant(policy, AuditRecord());
      (void)(*store)->ListAudit(100);
      return;
    }
    for (const TenantPolicy& tenant : broker::InForce(first).tenants) {
      const TenantPolicy again =
          broker::PolicyOf(tenant.name, broker::FieldsOf(tenant));
      Require(broker::FieldsOf(again) == broker::FieldsOf(tenant),
              "what is in force can be written and read");
    }
    Require(NextStart(directory.path()) == first, "a start changes nothing");
    CheckChanges(store->get(), policy);
    at_the_end = (*store)->GetDeclared();
  }
  Require(NextStart(directory.path()) == at_the_end,
          "what is in force is what the next start finds");
}

using UsageList = std::vector<std::pair<UsageKey, Usage>>;

UsageList ListAll(UsageStore* store) {
  const auto all =
      store->List(std::numeric_limits<int64_t>::min(), "", std::nullopt, 1000);
  return all.ok() ? *all : UsageList();
}

void FuzzUsage(Input* input) {
  static const std::string empty =
      NewDatabase("usage.db", [](const auto& path) {
        std::string aside;
        Require(UsageStore::Open(path, absl::UnixEpoch(), &aside).ok(),
                "a new database can be made");
      });
  const broker::TempDirectory directory(kMemoryDisk);
  WriteFile(directory / "usage.db", empty);
  const UsageKey key{SomeNumber(input), "fuzz", "GPU-1"};
  const Usage more{.peak_bytes = input->Byte(),
                   .byte_seconds = 1,
                   .granted = static_cast<uint64_t>(SomeNumber(input)),
                   .evictions = input->Byte()};
  const bool patched = Spoil(input, directory / "usage.db");
  std::string aside;
  const auto store = UsageStore::Open(directory.path(), absl::UnixEpoch(),
                                      &aside, {.days = 4, .rows = 8});
  if (!store.ok())
    return Require(!store.status().message().empty(), "a refusal says why");
  const UsageList before = ListAll(store->get());
  for (size_t i = 1; !patched && i < before.size(); ++i)
    Require(before[i - 1].first < before[i].first, "a list is in order");
  const absl::Status added = (*store)->Add({{key, more}});
  const UsageList after = ListAll(store->get());
  if (patched) return;
  if (!added.ok()) return Require(after == before, "what fails adds nothing");
  Usage sum;
  for (const auto& [each, usage] : before)
    if (each == key) sum = usage;
  sum.Add(more);
  bool is_there = false;
  for (const auto& [each, usage] : after) {
    is_there = is_there || each == key;
    Require(!(each == key) || usage == sum, "what was added is there");
  }
  Require(is_there || after.size() >= 4, "only the oldest is left out");
}

}  // namespace

void FuzzStore(Bytes bytes) {
  Input input(bytes);
  if (input.Below(4) == 0) return FuzzUsage(&input);
  FuzzQuotas(&input);
}

}  // namespace gmb::fuzz
