#include "broker/store/quota_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "absl/strings/str_cat.h"
#include "broker/store/schema.h"
#include "ipc/unique_fd.h"

namespace gmb::broker {
namespace {

constexpr char kFile[] = "/gmb.db";

void BindAmount(const quota::Amount& amount, Statement* statement) {
  if (amount.is_fraction()) {
    statement->BindNull().Bind(amount.fraction());
  } else {
    statement->Bind(static_cast<int64_t>(amount.bytes())).BindNull();
  }
}

quota::Amount ReadAmount(const Statement& row, int column) {
  if (!row.IsNull(column))
    return quota::Amount::Bytes(static_cast<uint64_t>(row.Int(column)));
  return quota::Amount::Fraction(row.Double(column + 1));
}

// Amounts beyond 63 bits cannot be stored, and no pool is so large.
bool Storable(const quota::Amount& amount) {
  return amount.bytes() <=
         static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

absl::Status TooLarge() {
  return absl::InvalidArgumentError("an amount is above 2^63 - 1 bytes");
}

// Made here, not by SQLite, so that nobody else can read it from the first
// byte.
absl::Status MakeFile(const std::string& path) {
  const ipc::UniqueFd fd(
      ::open(path.c_str(),
             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.valid())
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the state database ", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state database is not a regular file: ", path));
  }
  if ((info.st_mode & 0077) != 0 && ::fchmod(fd.get(), 0600) != 0) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat(
            "others can read the state database and its mode cannot be set: ",
            path));
  }
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                  RENAME_NOREPLACE) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot set the damaged database aside: ", from,
                            " to ", to));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<QuotaStore>> QuotaStore::Open(
    const std::string& directory) {
  const std::string path = directory + kFile;
  absl::Status ready = MakeFile(path);
  if (!ready.ok()) return ready;
  absl::StatusOr<Database> database = Database::Open(path);
  if (!database.ok()) return database.status();
  ready = PrepareSchema(&*database);
  if (absl::IsDataLoss(ready)) {
    return absl::DataLossError(
        absl::StrCat("the broker does not start without the quotas that "
                     "operators have set: restore ",
                     path,
                     " from a backup, or start with --fresh-state, which keeps "
                     "it aside and takes the quotas of the "
                     "configuration file alone: ",
                     ready.message()));
  }
  if (!ready.ok()) return ready;
  return std::unique_ptr<QuotaStore>(new QuotaStore(*std::move(database)));
}

absl::StatusOr<std::string> QuotaStore::SetAside(const std::string& directory,
                                                 absl::Time now) {
  const std::string path = directory + kFile;
  const std::string aside = absl::StrCat(
      path, ".corrupt-",
      absl::FormatTime("%Y%m%dT%H%M%E6SZ", now, absl::UTCTimeZone()));
  // The journal first: it must not be taken for the new database's.
  if (::access((path + "-journal").c_str(), F_OK) == 0) {
    const absl::Status moved = Rename(path + "-journal", aside + "-journal");
    if (!moved.ok()) return moved;
  }
  const absl::Status moved = Rename(path, aside);
  if (!moved.ok()) return moved;
  return aside;
}

template <typename Change>
absl::Status QuotaStore::Commit(const AuditRecord& audit,
                                const Change& change) {
  ipc::MutexLock lock(&mu_);
  absl::StatusOr<Transaction> transaction = Transaction::Begin(&database_);
  if (!transaction.ok()) return transaction.status();
  absl::Status done = change();
  if (!done.ok()) return done;
  done = AddAudit(audit);
  if (!done.ok()) return done;
  return transaction->Commit();
}

absl::Status QuotaStore::PutTenant(const TenantPolicy& policy,
                                   const AuditRecord& audit) {
  return Commit(audit, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return PutTenantRows(policy);
  });
}

absl::Status QuotaStore::DeleteTenant(absl::string_view name,
                                      const AuditRecord& audit) {
  return Commit(audit, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return PutTenantRow(name, /*deleted=*/true, 0, 0);
  });
}

absl::Status QuotaStore::PutPoolTarget(absl::string_view device,
                                       const quota::Amount& target,
                                       const AuditRecord& audit) {
  if (!Storable(target)) return TooLarge();
  return Commit(audit, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Statement put(&database_,
                  "INSERT OR REPLACE INTO pools(device, target_bytes, "
                  "target_fraction) VALUES(?,?,?)");
    put.Bind(device);
    BindAmount(target, &put);
    return put.Run();
  });
}

absl::Status QuotaStore::Audit(const AuditRecord& record) {
  return Commit(record, [] { return absl::OkStatus(); });
}

absl::Status QuotaStore::AddAudit(const AuditRecord& record) {
  Statement add(&database_,
                "INSERT INTO audit(at_ns, operator_name, action, subject, "
                "detail) VALUES(?,?,?,?,?)");
  add.Bind(absl::ToUnixNanos(record.at))
      .Bind(record.operator_name)
      .Bind(record.action)
      .Bind(record.subject)
      .Bind(record.detail);
  absl::Status done = add.Run();
  if (!done.ok()) return done;
  Statement forget(
      &database_,
      "DELETE FROM audit WHERE id <= (SELECT MAX(id) FROM audit) - ?");
  return forget.Bind(kKeptAuditRecords).Run();
}

// Replaces the tenant's row, and with it what belongs to it (ON DELETE
// CASCADE).
absl::Status QuotaStore::PutTenantRow(absl::string_view name, bool deleted,
                                      uint32_t max_handles,
                                      uint32_t max_sessions) {
  Statement remove(&database_, "DELETE FROM tenants WHERE name = ?");
  absl::Status done = remove.Bind(name).Run();
  if (!done.ok()) return done;
  Statement add(&database_,
                "INSERT INTO tenants(name, deleted, max_handles, max_sessions) "
                "VALUES(?,?,?,?)");
  return add.Bind(name)
      .Bind(static_cast<int64_t>(deleted))
      .Bind(static_cast<int64_t>(max_handles))
      .Bind(static_cast<int64_t>(max_sessions))
      .Run();
}

absl::Status QuotaStore::PutQuota(absl::string_view tenant,
                                  absl::string_view device,
                                  const quota::TenantQuota& quota) {
  if (!Storable(quota.guarantee) || !Storable(quota.limit)) return TooLarge();
  Statement put(&database_,
                "INSERT INTO quotas(tenant, device, guarantee_bytes, "
                "guarantee_fraction, limit_bytes, "
                "limit_fraction, weight) VALUES(?,?,?,?,?,?,?)");
  put.Bind(tenant).Bind(device);
  BindAmount(quota.guarantee, &put);
  BindAmount(quota.limit, &put);
  return put.Bind(quota.weight).Run();
}

absl::Status QuotaStore::PutTenantRows(const TenantPolicy& policy) {
  absl::Status done = PutTenantRow(policy.name, /*deleted=*/false,
                                   policy.max_handles, policy.max_sessions);
  if (!done.ok()) return done;
  done = PutQuota(policy.name, "", policy.quota);
  for (const auto& [device, quota] : policy.device_quotas) {
    if (!done.ok()) return done;
    done = PutQuota(policy.name, device, quota);
  }
  for (const uint32_t uid : policy.uids) {
    if (!done.ok()) return done;
    Statement put(&database_,
                  "INSERT OR IGNORE INTO uids(tenant, uid) VALUES(?,?)");
    done = put.Bind(policy.name).Bind(static_cast<int64_t>(uid)).Run();
  }
  return done;
}

absl::StatusOr<StoredState> QuotaStore::Load() {
  ipc::MutexLock lock(&mu_);
  StoredState state;
  const absl::Status tenants = LoadTenants(&state);
  if (!tenants.ok()) return tenants;
  Statement pools(&database_,
                  "SELECT device, target_bytes, target_fraction FROM pools");
  for (;;) {
    const absl::StatusOr<bool> row = pools.Step();
    if (!row.ok()) return row.status();
    if (!*row) return state;
    state.pool_targets[pools.Text(0)] = ReadAmount(pools, 1);
  }
}

absl::Status QuotaStore::LoadTenants(StoredState* state) {
  Statement tenants(&database_,
                    "SELECT name, deleted, max_handles, max_sessions FROM "
                    "tenants ORDER BY name");
  for (;;) {
    const absl::StatusOr<bool> row = tenants.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    if (tenants.Int(1) != 0) {
      state->deleted_tenants.push_back(tenants.Text(0));
      continue;
    }
    TenantPolicy policy;
    policy.name = tenants.Text(0);
    policy.max_handles = static_cast<uint32_t>(tenants.Int(2));
    policy.max_sessions = static_cast<uint32_t>(tenants.Int(3));
    absl::Status loaded = LoadQuotas(&policy);
    if (loaded.ok()) loaded = LoadUids(&policy);
    if (!loaded.ok()) return loaded;
    state->tenants.push_back(std::move(policy));
  }
}

absl::Status QuotaStore::LoadQuotas(TenantPolicy* policy) {
  Statement quotas(&database_,
                   "SELECT device, guarantee_bytes, guarantee_fraction, "
                   "limit_bytes, limit_fraction, weight "
                   "FROM quotas WHERE tenant = ?");
  quotas.Bind(policy->name);
  for (;;) {
    const absl::StatusOr<bool> row = quotas.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    const quota::TenantQuota quota{ReadAmount(quotas, 1), ReadAmount(quotas, 3),
                                   quotas.Double(5)};
    const std::string device = quotas.Text(0);
    if (device.empty()) {
      policy->quota = quota;
    } else {
      policy->device_quotas[device] = quota;
    }
  }
}

absl::Status QuotaStore::LoadUids(TenantPolicy* policy) {
  Statement uids(&database_,
                 "SELECT uid FROM uids WHERE tenant = ? ORDER BY uid");
  uids.Bind(policy->name);
  for (;;) {
    const absl::StatusOr<bool> row = uids.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    policy->uids.push_back(static_cast<uint32_t>(uids.Int(0)));
  }
}

absl::StatusOr<std::vector<AuditRecord>> QuotaStore::ListAudit(uint32_t limit) {
  ipc::MutexLock lock(&mu_);
  Statement list(&database_,
                 "SELECT at_ns, operator_name, action, subject, detail FROM "
                 "audit ORDER BY id DESC LIMIT ?");
  list.Bind(static_cast<int64_t>(limit));
  std::vector<AuditRecord> records;
  for (;;) {
    const absl::StatusOr<bool> row = list.Step();
    if (!row.ok()) return row.status();
    if (!*row) return records;
    records.push_back({absl::FromUnixNanos(list.Int(0)), list.Text(1),
                       list.Text(2), list.Text(3), list.Text(4)});
  }
}

}  // namespace gmb::broker
