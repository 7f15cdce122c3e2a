// Operators' changes on the disk, each with its audit record.
#include "broker/store/quota_store.h"

#include <limits>

#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

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

// Refused changes are the operator's to see; that the disk refuses them is for
// all who look after the broker.
void LogNotWritten(const AuditRecord& record, const absl::Status& why) {
  LogEvent(LogLevel::kError, "state_not_written",
           {{"action", record.action},
            {"subject", record.subject},
            {"operator", record.operator_name},
            {"detail", record.detail},
            {"message", why.message()}});
}

absl::Status TooLarge() {
  return absl::InvalidArgumentError("an amount is above 2^63 - 1 bytes");
}

}  // namespace

template <typename Change>
absl::Status QuotaStore::Commit(const AuditRecord& audit,
                                const Change& change) {
  const absl::Status done = [&]() -> absl::Status {
    base::MutexLock lock(&mu_);
    GMB_ASSIGN_OR_RETURN(Transaction transaction,
                         Transaction::Begin(&database_));
    GMB_RETURN_IF_ERROR(change());
    GMB_RETURN_IF_ERROR(AddAudit(audit));
    return transaction.Commit();
  }();
  if (!done.ok() && !absl::IsInvalidArgument(done)) LogNotWritten(audit, done);
  return done;
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
    TenantPolicy gone;
    gone.name = std::string(name);
    return PutTenantRow(gone, /*deleted=*/true);
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

absl::Status QuotaStore::Audit(const AuditRecord& record,
                               absl::FunctionRef<absl::Status()> act,
                               OnFullDisk on_full_disk) {
  const absl::StatusOr<int64_t> id = WriteAudit(record);
  if (!id.ok()) {
    LogNotWritten(record, id.status());
    const bool act_anyway = absl::IsResourceExhausted(id.status()) &&
                            on_full_disk == OnFullDisk::kActAnyway;
    return act_anyway ? act() : id.status();
  }
  absl::Status done = act();
  if (!done.ok()) TakeOutAudit(*id).IgnoreError();
  return done;
}

absl::StatusOr<int64_t> QuotaStore::WriteAudit(const AuditRecord& record) {
  base::MutexLock lock(&mu_);
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  absl::Status done = AddAudit(record);
  if (!done.ok()) return done;
  const absl::StatusOr<int64_t> id =
      database_.QueryInt("SELECT MAX(id) FROM audit");
  if (!id.ok()) return id;
  done = transaction.Commit();
  if (!done.ok()) return done;
  return id;
}

// Its number is used again, so that what is refused does not shorten the list,
// which is kept by numbers.
absl::Status QuotaStore::TakeOutAudit(int64_t id) {
  base::MutexLock lock(&mu_);
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  Statement take_out(&database_, "DELETE FROM audit WHERE id = ?");
  absl::Status done = take_out.Bind(id).Run();
  if (!done.ok()) return done;
  done = database_.Execute(
      "UPDATE sqlite_sequence SET seq = (SELECT IFNULL(MAX(id), 0) FROM audit) "
      "WHERE name = 'audit'");
  if (!done.ok()) return done;
  return transaction.Commit();
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
  GMB_RETURN_IF_ERROR(add.Run());
  Statement forget(
      &database_,
      "DELETE FROM audit WHERE id <= (SELECT MAX(id) FROM audit) - ?");
  return forget.Bind(kKeptAuditRecords).Run();
}

// Replaces the tenant's row, and with it what belongs to it (ON DELETE
// CASCADE).
absl::Status QuotaStore::PutTenantRow(const TenantPolicy& policy,
                                      bool deleted) {
  const ReclaimPolicy& reclaim = policy.reclaim;
  if (!Storable(reclaim.host_limit)) return TooLarge();
  Statement remove(&database_, "DELETE FROM tenants WHERE name = ?");
  GMB_RETURN_IF_ERROR(remove.Bind(policy.name).Run());
  Statement add(&database_,
                "INSERT INTO tenants(name, deleted, max_handles, max_sessions, "
                "may_terminate, min_residency_ns, pause_grace_ns, "
                "host_limit_bytes, host_limit_fraction) "
                "VALUES(?,?,?,?,?,?,?,?,?)");
  add.Bind(policy.name)
      .Bind(static_cast<int64_t>(deleted))
      .Bind(static_cast<int64_t>(policy.max_handles))
      .Bind(static_cast<int64_t>(policy.max_sessions))
      .Bind(static_cast<int64_t>(reclaim.may_terminate))
      .Bind(static_cast<int64_t>(reclaim.min_residency.count()))
      .Bind(static_cast<int64_t>(reclaim.pause_grace.count()));
  BindAmount(reclaim.host_limit, &add);
  return add.Run();
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
  absl::Status done = PutTenantRow(policy, /*deleted=*/false);
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
  base::MutexLock lock(&mu_);
  StoredState state;
  GMB_RETURN_IF_ERROR(LoadTenants(&state));
  Statement pools(&database_,
                  "SELECT device, target_bytes, target_fraction FROM pools");
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, pools.Step());
    if (!row) return state;
    state.pool_targets[pools.Text(0)] = ReadAmount(pools, 1);
  }
}

absl::Status QuotaStore::LoadTenants(StoredState* state) {
  Statement tenants(&database_,
                    "SELECT name, deleted, max_handles, max_sessions, "
                    "may_terminate, min_residency_ns, pause_grace_ns, "
                    "host_limit_bytes, host_limit_fraction "
                    "FROM tenants ORDER BY name");
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, tenants.Step());
    if (!row) return absl::OkStatus();
    if (tenants.Int(1) != 0) {
      state->deleted_tenants.push_back(tenants.Text(0));
      continue;
    }
    TenantPolicy policy;
    policy.name = tenants.Text(0);
    policy.max_handles = static_cast<uint32_t>(tenants.Int(2));
    policy.max_sessions = static_cast<uint32_t>(tenants.Int(3));
    policy.reclaim = {.may_terminate = tenants.Int(4) != 0,
                      .min_residency = quota::Nanoseconds(tenants.Int(5)),
                      .pause_grace = quota::Nanoseconds(tenants.Int(6)),
                      .host_limit = ReadAmount(tenants, 7)};
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
    GMB_ASSIGN_OR_RETURN(const bool row, quotas.Step());
    if (!row) return absl::OkStatus();
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
    GMB_ASSIGN_OR_RETURN(const bool row, uids.Step());
    if (!row) return absl::OkStatus();
    policy->uids.push_back(static_cast<uint32_t>(uids.Int(0)));
  }
}

absl::StatusOr<std::vector<AuditRecord>> QuotaStore::ListAudit(uint32_t limit,
                                                               int64_t before) {
  base::MutexLock lock(&mu_);
  Statement list(&database_,
                 "SELECT at_ns, operator_name, action, subject, detail, id "
                 "FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?");
  list.Bind(before > 0 ? before : std::numeric_limits<int64_t>::max())
      .Bind(static_cast<int64_t>(limit));
  std::vector<AuditRecord> records;
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return records;
    records.push_back({.at = absl::FromUnixNanos(list.Int(0)),
                       .operator_name = list.Text(1),
                       .action = list.Text(2),
                       .subject = list.Text(3),
                       .detail = list.Text(4),
                       .id = list.Int(5)});
  }
}

}  // namespace gmb::broker
