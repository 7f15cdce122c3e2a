// Operators' changes on the disk: what an older broker stored, moved into the
// tables of this one.
#include "broker/store/format2.h"

#include <cstdint>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "broker/declared/merge.h"
#include "broker/store/declared_rows.h"

namespace gmb::broker {
namespace {

// Nothing was kept of who it was.
const Source kSomebody{Source::Writer::kOperator, ""};

// An amount was bytes or a fraction: the other column was null.
quota::Amount ReadAmount(const Statement& row, int column) {
  if (!row.IsNull(column))
    return quota::Amount::Bytes(static_cast<uint64_t>(row.Int(column)));
  return quota::Amount::Fraction(row.Double(column + 1));
}

absl::Status LoadQuotas(Database* database, TenantPolicy* policy) {
  Statement quotas(database,
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

absl::Status LoadUids(Database* database, TenantPolicy* policy) {
  Statement uids(database,
                 "SELECT uid FROM uids WHERE tenant = ? ORDER BY uid");
  uids.Bind(policy->name);
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, uids.Step());
    if (!row) return absl::OkStatus();
    policy->uids.push_back(static_cast<uint32_t>(uids.Int(0)));
  }
}

absl::Status LoadTenants(Database* database, Declared* declared) {
  Statement tenants(database,
                    "SELECT name, deleted, max_handles, max_sessions, "
                    "may_terminate, min_residency_ns, pause_grace_ns, "
                    "host_limit_bytes, host_limit_fraction "
                    "FROM tenants ORDER BY name");
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, tenants.Step());
    if (!row) return absl::OkStatus();
    if (tenants.Int(1) != 0) {
      Delete(tenants.Text(0), declared);
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
    GMB_RETURN_IF_ERROR(LoadQuotas(database, &policy));
    GMB_RETURN_IF_ERROR(LoadUids(database, &policy));
    WriteFields(policy.name, FieldsOf(policy), kSomebody, absl::UnixEpoch(),
                declared);
  }
}

absl::Status LoadPools(Database* database, Declared* declared) {
  Statement pools(database,
                  "SELECT device, target_bytes, target_fraction FROM pools");
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, pools.Step());
    if (!row) return absl::OkStatus();
    WritePool(pools.Text(0), WriteAmount(ReadAmount(pools, 1)), kSomebody,
              absl::UnixEpoch(), declared);
  }
}

absl::StatusOr<Declared> LoadFormat2(Database* database) {
  Declared declared;
  GMB_RETURN_IF_ERROR(LoadTenants(database, &declared));
  GMB_RETURN_IF_ERROR(LoadPools(database, &declared));
  return declared;
}

}  // namespace

absl::Status MoveToFormat3(Database* database) {
  GMB_RETURN_IF_ERROR(database->Execute(kDeclaredTables));
  GMB_RETURN_IF_ERROR(database->Execute(kFormerTable));
  GMB_ASSIGN_OR_RETURN(const Declared declared, LoadFormat2(database));
  GMB_RETURN_IF_ERROR(SaveDeclared(Declared(), declared, database));
  return database->Execute(
      "DROP TABLE uids; DROP TABLE quotas; DROP TABLE tenants; "
      "DROP TABLE pools");
}

}  // namespace gmb::broker
