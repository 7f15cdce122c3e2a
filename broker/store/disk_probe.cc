// Whether operators' changes can be stored.
#include "broker/store/disk_probe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace gmb::broker {
namespace {

// So much must fit: a change of an operator with its journal.
constexpr size_t kProbeBytes = size_t{64} << 10;

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

}  // namespace

absl::Status ProbeDisk(const std::string& directory) {
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

}  // namespace gmb::broker
