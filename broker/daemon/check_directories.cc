// `gmbd --check`: the directories of a start, looked at and left as they are.
#include "broker/daemon/check_directories.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "broker/instance_lock.h"
#include "broker/store/disk_probe.h"

namespace gmb::broker {
namespace {

namespace fs = std::filesystem;

// The directory itself, or the one in which it would be made.
absl::StatusOr<std::string> NearestThatIsThere(const std::string& path) {
  std::error_code error;
  for (fs::path at = fs::absolute(path, error);; at = at.parent_path()) {
    const fs::file_status status = fs::status(at, error);
    if (fs::is_directory(status)) return at.string();
    if (fs::exists(status)) {
      return absl::FailedPreconditionError(
          absl::StrCat("not a directory: ", at.string()));
    }
    if (at == at.parent_path()) {
      return absl::NotFoundError(absl::StrCat("cannot look at ", path));
    }
  }
}

}  // namespace

absl::Status CheckDirectory(const std::string& path) {
  GMB_ASSIGN_OR_RETURN(const std::string there, NearestThatIsThere(path));
  // Without the lock's file nobody can hold it.
  if (::access((path + "/gmbd.lock").c_str(), F_OK) == 0)
    GMB_RETURN_IF_ERROR(InstanceLock::Probe(path));
  return ProbeDisk(there);
}

absl::StatusOr<Declared> ReadStored(const std::string& state_dir) {
  const std::string database = state_dir + "/gmb.db";
  if (::access(database.c_str(), F_OK) != 0) return Declared();
  std::error_code error;
  if (fs::is_symlink(database, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state database is a symbolic link, and a broker "
                     "follows none: ",
                     database));
  }
  const fs::path temporary =
      fs::canonical(fs::temp_directory_path(error), error);
  std::string copy = temporary / "gmbd-check-XXXXXX";
  if (error || ::mkdtemp(copy.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("what operators changed was not looked at, for it is read "
                     "from a copy, and none can be made in ",
                     temporary.empty() ? "$TMPDIR" : temporary.string()));
  }
  const absl::Cleanup remove = [&copy] {
    std::error_code ignored;
    fs::remove_all(copy, ignored);
  };
  for (const char* const file : {"/gmb.db", "/gmb.db-journal"}) {
    if (!fs::exists(state_dir + file, error)) continue;
    fs::copy_file(state_dir + file, copy + file, error);
    if (error) {
      return absl::ErrnoToStatus(
          error.value(),
          absl::StrCat("cannot read the state database ", state_dir, file));
    }
  }
  const absl::StatusOr<std::unique_ptr<QuotaStore>> store =
      QuotaStore::Open(copy);
  if (store.ok()) return (*store)->GetDeclared();
  return absl::Status(
      store.status().code(),
      absl::StrReplaceAll(store.status().message(), {{copy, state_dir}}));
}

}  // namespace gmb::broker
