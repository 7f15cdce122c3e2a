// Before broker and keeper meet: the directory that says who may.
#include "keeper/link/keeper_place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "ipc/socket_path.h"

namespace gmb::keeper {
namespace {

constexpr char kNameOneOfItsOwn[] =
    "name a directory of its own, as in /run/gmb-keeper/keeper.sock";

// The root directory, and those that all may write to.
bool IsForEverybody(const struct stat& info) {
  struct stat root {};
  return (info.st_mode & S_ISVTX) != 0 ||
         (::stat("/", &root) == 0 && root.st_dev == info.st_dev &&
          root.st_ino == info.st_ino);
}

absl::Status CheckDirectory(int fd, const std::string& directory) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot look at the directory ", directory));
  }
  if (info.st_uid != ::geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a keeper's directory must belong to the user of broker and keeper: ",
        directory, " belongs to uid ", info.st_uid,
        ", and this process is uid ", ::geteuid(), ": ", kNameOneOfItsOwn));
  }
  if ((info.st_mode & 077) != 0 && IsForEverybody(info)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a keeper's directory must be closed to others, and ",
                     directory, " is for all: ", kNameOneOfItsOwn));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a keeper's directory must be closed to others, for whoever reaches it "
        "gets all that is kept: chmod 0700 ",
        directory, ", if nothing but the keeper's is in it; otherwise ",
        kNameOneOfItsOwn));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeeperPlace> KeeperPlace::Open(const std::string& path,
                                              bool make) {
  const absl::Status fits = ipc::CheckSocketPath(path);
  if (!fits.ok()) return fits;
  const size_t slash = path.rfind('/');
  const std::string name =
      slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                             : path.substr(0, slash);
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat("a keeper's socket is a file in a directory of its own, "
                     "as in /run/gmb-keeper/keeper.sock: ",
                     path));
  }
  if (make && ::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make the directory ", directory));
  }
  base::UniqueFd fd(::open(directory.c_str(),
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) {
      return absl::UnavailableError(
          absl::StrCat("there is no directory ", directory,
                       ": start a keeper with gmb-keeper --socket ", path));
    }
    if (errno == ELOOP || errno == ENOTDIR) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a keeper's directory must be one, and no symbolic link: ",
          directory));
    }
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the directory ", directory));
  }
  const absl::Status safe = CheckDirectory(fd.get(), directory);
  if (!safe.ok()) return safe;
  return KeeperPlace(path, name, std::move(fd));
}

std::string KeeperPlace::socket() const {
  return absl::StrCat("/proc/self/fd/", directory_.get(), "/", name_);
}

absl::Status KeeperPlace::Lock() const {
  if (::flock(directory_.get(), LOCK_EX | LOCK_NB) == 0)
    return absl::OkStatus();
  if (errno != EWOULDBLOCK) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot lock the directory of ", path_));
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "another keeper uses this directory: look with gmb keeper status "
      "--socket ",
      path_));
}

absl::Status KeeperPlace::TakeLock(base::UniqueFd directory) {
  struct stat ours {};
  struct stat theirs {};
  if (::fstat(directory_.get(), &ours) != 0 ||
      ::fstat(directory.get(), &theirs) != 0 || ours.st_dev != theirs.st_dev ||
      ours.st_ino != theirs.st_ino) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another directory lies there by now than the keeper has: ", path_));
  }
  directory_ = std::move(directory);
  return Lock();  // it has it already
}

}  // namespace gmb::keeper
