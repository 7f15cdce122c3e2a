// `gmbd --check`: the directories of a start, looked at and left as they are.
#include "broker/daemon/check_directories.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "broker/instance_lock.h"

namespace gmb::broker {
namespace {

namespace fs = std::filesystem;

// So much must fit: a change of an operator with its journal.
constexpr size_t kProbeBytes = size_t{64} << 10;

// The directory itself, or the one in which it would be made.
absl::StatusOr<std::string> NearestThatIsThere(const std::string& path) {
  std::error_code error;
  for (fs::path at = fs::absolute(path);; at = at.parent_path()) {
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

// A file without a name, or where there is none such, one that is removed at
// once.
base::UniqueFd OpenProbe(const std::string& directory) {
  base::UniqueFd fd(
      ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd.valid() || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = directory + "/.gmbd-check-XXXXXX";
  fd = base::UniqueFd(::mkostemp(path.data(), O_CLOEXEC));
  if (fd.valid()) ::unlink(path.c_str());
  return fd;
}

absl::Status WriteProbe(const std::string& directory) {
  const base::UniqueFd fd = OpenProbe(directory);
  if (!fd.valid()) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make files in ", directory));
  }
  const std::array<char, 4096> page{};
  for (size_t done = 0; done < kProbeBytes; done += page.size()) {
    errno = ENOSPC;  // what a short write means
    if (::write(fd.get(), page.data(), page.size()) !=
        static_cast<ssize_t>(page.size())) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot write to ", directory));
    }
  }
  if (::fsync(fd.get()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("cannot write to ", directory));
}

}  // namespace

absl::Status CheckDirectory(const std::string& path) {
  GMB_ASSIGN_OR_RETURN(const std::string there, NearestThatIsThere(path));
  // Without the lock's file nobody can hold it.
  if (::access((path + "/gmbd.lock").c_str(), F_OK) == 0)
    GMB_RETURN_IF_ERROR(InstanceLock::Acquire(path).status());
  return WriteProbe(there);
}

absl::StatusOr<StoredState> ReadStored(const std::string& state_dir) {
  const std::string database = state_dir + "/gmb.db";
  if (::access(database.c_str(), F_OK) != 0) return StoredState();
  std::error_code error;
  std::string copy = fs::temp_directory_path(error) / "gmbd-check-XXXXXX";
  if (::mkdtemp(copy.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make the directory ", copy));
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
  if (store.ok()) return (*store)->Load();
  return absl::Status(
      store.status().code(),
      absl::StrReplaceAll(store.status().message(), {{copy, state_dir}}));
}

}  // namespace gmb::broker
