// The file of a database: made, and set aside.
#include "broker/store/database_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/regular_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace gmb::broker {
namespace {

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

absl::Status MakeDatabaseFile(const std::string& path) {
  const base::UniqueFd fd(
      ::open(path.c_str(),
             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.valid())
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot open the database ", path));
  GMB_ASSIGN_OR_RETURN(const struct stat info,
                       base::LookAtRegularFile(fd.get(), "the database", path));
  if ((info.st_mode & 0077) != 0 && ::fchmod(fd.get(), 0600) != 0) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat(
            "others can read the database and its mode cannot be set: ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SetDatabaseAside(const std::string& path,
                                             absl::Time now) {
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
