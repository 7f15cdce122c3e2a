#ifndef GMB_BROKER_STORE_QUOTA_STORE_H_
#define GMB_BROKER_STORE_QUOTA_STORE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "broker/declared/declared.h"
#include "broker/machine/tenant.h"
#include "broker/store/audit_record.h"
#include "broker/store/audit_rows.h"
#include "broker/store/database.h"
#include "broker/store/declared_now.h"
#include "broker/store/refused_changes.h"
#include "broker/store/state_on_disk.h"
#include "quota/amount.h"

namespace gmb::broker {

// The values in force of what the file, applies and operators declared.
struct StoredState {
  std::vector<TenantPolicy> tenants;  // without tokens, which are never stored
  // Although a file may still name them.
  std::vector<std::string> deleted_tenants;
  std::map<std::string, quota::Amount> pool_targets;  // by UUID; operators'
};
[[nodiscard]] StoredState InForce(const Declared& declared);

// Durable quotas and the audit log, in DIR/gmb.db (mode 0600).
//
// A change and its audit record are one transaction, on the disk when the call
// returns; after an error nothing has changed. Thread-safe, and slow (it waits
// for the disk): never call it under the core's lock. One process a directory:
// the caller holds the directory's InstanceLock. Errors are Database's.
class QuotaStore {
 public:
  // The directory must exist. DATA_LOSS: the database is damaged; it is left as
  // it is. Operators' limits would silently not hold without it, so the caller
  // starts without it only when told to, after SetAside.
  static absl::StatusOr<std::unique_ptr<QuotaStore>> Open(
      const std::string& directory);
  ~QuotaStore();
  QuotaStore(const QuotaStore&) = delete;
  QuotaStore& operator=(const QuotaStore&) = delete;

  // Renames the database to gmb.db.corrupt-<time>, which must not exist, and
  // its journal likewise. Returns the new path.
  static absl::StatusOr<std::string> SetAside(const std::string& directory,
                                              absl::Time now);

  // A file was there, with nothing in it: not even what a new one gets.
  // Anything that was stored there is lost.
  [[nodiscard]] bool found_empty() const { return found_empty_; }
  // Whether the disk takes changes now.
  [[nodiscard]] absl::Status CheckDisk();

  absl::StatusOr<StoredState> Load();
  // All that is declared, and in force.
  [[nodiscard]] Declared GetDeclared();
  // All of it in one step. Without an action in `audit` it is not listed there.
  absl::Status PutDeclared(const Declared& declared, const AuditRecord& audit);
  // Although the disk does not take it: as long as this broker lives, and until
  // it goes to the disk with the next change.
  void HoldDeclared(const Declared& declared);

  // A refused change that may be on the disk is taken out of it, as each use
  // does: for a broker that leaves the disk to the next one. Waits for the disk
  // where there is such a change.
  void SettleRefused();

  // All that is declared, for reports: never waits for the disk. It is not
  // changed.
  [[nodiscard]] std::shared_ptr<const Declared> Shown() const {
    return declared_.Get();
  }

  // Makes the change of what is declared. Where it changes nothing, nothing is
  // written, and no record. A record without a detail gets the change in words.
  absl::Status Change(AuditRecord audit,
                      absl::FunctionRef<void(Declared*)> change);
  // Writes the fields that differ from what is in force, and those of `named`
  // that are so for a time.
  absl::Status PutTenant(const TenantPolicy& policy, const AuditRecord& audit,
                         const std::set<std::string>& named = {});
  absl::Status DeleteTenant(absl::string_view name, const AuditRecord& audit);
  absl::Status PutPoolTarget(absl::string_view device,
                             const quota::Amount& target,
                             const AuditRecord& audit);
  // For an action that changes nothing stored, such as draining a pool. `act`
  // decides and acts, once the record is on the disk, and not without: so
  // nothing is done that is not listed. The record of an action that `act`
  // refuses is taken out again, once the disk lets it be. It stays listed only
  // where the broker ends in between. With kActAnyway it is done all the same
  // where the disk takes no record (it is full, read-only, broken), for what
  // operators do in trouble; the log has the record then.
  enum class OnBadDisk { kRefuse, kActAnyway };
  absl::Status Audit(const AuditRecord& record,
                     absl::FunctionRef<absl::Status()> act,
                     OnBadDisk on_bad_disk = OnBadDisk::kRefuse);

  // The newest first: at most `limit`, of those before that id; 0: of all. The
  // last kKeptAuditRecords are kept. A change that was refused and is on the disk
  // all the same, since that cannot be written now, has "_refused" behind its
  // action.
  absl::StatusOr<std::vector<AuditRecord>> ListAudit(
      uint32_t limit, int64_t before = 0, const AuditFilter& filter = {});

 private:
  QuotaStore(std::string directory, bool found_empty, Database database,
             const Declared& declared)
      : directory_(std::move(directory)),
        found_empty_(found_empty),
        disk_(std::move(database), declared),
        declared_(declared) {}

  // `declared`, with what its tenants had before, and the audit record, or
  // neither.
  absl::Status Commit(AuditRecord audit, Declared declared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Each use tries, and nothing is written before that.
  absl::Status Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string directory_;
  const bool found_empty_;
  base::Mutex mu_;  // held while the disk is waited for
  StateOnDisk disk_ ABSL_GUARDED_BY(mu_);
  RefusedChanges refused_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> in_doubt_ = false;  // there is any of these
  DeclaredNow declared_;                // changed under mu_ alone
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_QUOTA_STORE_H_
