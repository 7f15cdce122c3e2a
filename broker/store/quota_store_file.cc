// The file of a QuotaStore: made, opened, set aside.
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/store/database_file.h"
#include "broker/store/declared_rows.h"
#include "broker/store/disk_probe.h"
#include "broker/store/quota_store.h"
#include "broker/store/schema.h"

namespace gmb::broker {
namespace {

constexpr char kFile[] = "/gmb.db";

absl::StatusOr<Declared> ReadAll(Database* database) {
  GMB_RETURN_IF_ERROR(PrepareSchema(database));
  return LoadDeclared(database);
}

}  // namespace

absl::StatusOr<std::unique_ptr<QuotaStore>> QuotaStore::Open(
    const std::string& directory) {
  const std::string path = directory + kFile;
  struct stat info {};
  const bool found_empty = ::lstat(path.c_str(), &info) == 0 &&
                           S_ISREG(info.st_mode) && info.st_size == 0;
  absl::Status ready = MakeDatabaseFile(path);
  if (!ready.ok()) return ready;
  GMB_ASSIGN_OR_RETURN(Database database, Database::Open(path));
  const absl::StatusOr<Declared> declared = ReadAll(&database);
  if (absl::IsDataLoss(declared.status())) {
    return absl::DataLossError(
        absl::StrCat("the broker does not start without the quotas that "
                     "operators have set: restore ",
                     path,
                     " from a backup, or start with --fresh-state, which keeps "
                     "it aside and takes the quotas of the "
                     "configuration file alone: ",
                     declared.status().message()));
  }
  if (!declared.ok()) return declared.status();
  return std::unique_ptr<QuotaStore>(
      new QuotaStore(directory, found_empty, std::move(database), *declared));
}

QuotaStore::~QuotaStore() {
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
}

absl::Status QuotaStore::CheckDisk() {
  GMB_RETURN_IF_ERROR(ProbeDisk(directory_));
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::string> QuotaStore::SetAside(const std::string& directory,
                                                 absl::Time now) {
  return SetDatabaseAside(directory + kFile, now);
}

}  // namespace gmb::broker
