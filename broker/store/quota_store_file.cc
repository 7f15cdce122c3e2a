// The file of a QuotaStore: made, opened, set aside.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "broker/store/declared_rows.h"
#include "broker/store/disk_probe.h"
#include "broker/store/quota_store.h"
#include "broker/store/schema.h"

namespace gmb::broker {
namespace {

constexpr char kFile[] = "/gmb.db";

// Made here, not by SQLite, so that nobody else can read it from the first
// byte.
absl::Status MakeFile(const std::string& path) {
  const base::UniqueFd fd(
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
  struct stat info {};
  const bool found_empty = ::lstat(path.c_str(), &info) == 0 &&
                           S_ISREG(info.st_mode) && info.st_size == 0;
  absl::Status ready = MakeFile(path);
  if (!ready.ok()) return ready;
  GMB_ASSIGN_OR_RETURN(Database database, Database::Open(path));
  ready = PrepareSchema(&database);
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
  GMB_ASSIGN_OR_RETURN(const Declared declared, LoadDeclared(&database));
  return std::unique_ptr<QuotaStore>(
      new QuotaStore(directory, found_empty, std::move(database), declared));
}

absl::Status QuotaStore::CheckDisk() const { return ProbeDisk(directory_); }

absl::StatusOr<std::string> QuotaStore::SetAside(const std::string& directory,
                                                 absl::Time now) {
  const std::string path = directory + kFile;
  const std::string aside = absl::StrCat(
      path, ".corrupt-",
      absl::FormatTime("%Y%m%dT%H%M%E6SZ", now, absl::UTCTimeZone()));
  // The journal first: it must not be taken for the new database's.
  if (::access((path + "-journal").c_str(), F_OK) == 0) {
    GMB_RETURN_IF_ERROR(Rename(path + "-journal", aside + "-journal"));
  }
  GMB_RETURN_IF_ERROR(Rename(path, aside));
  return aside;
}

}  // namespace gmb::broker
