// A file that others read while it is written anew.
#include "client/cli/atomic_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace gmb::cli {
namespace {

constexpr mode_t kMode = 0644;

absl::Status Failed(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

// mkstemp makes files that nobody else reads.
mode_t Mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return kMode & ~mask;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, absl::string_view text) {
  // In the same directory, and not named *.prom, which a collector would read.
  std::string beside = absl::StrCat(path, ".XXXXXX");
  const base::UniqueFd fd(::mkostemp(beside.data(), O_CLOEXEC));
  if (!fd.valid()) return Failed(path);
  absl::Cleanup remove = [&beside] { ::unlink(beside.c_str()); };
  if (!WriteAll(fd.get(), text) || ::fchmod(fd.get(), Mode()) != 0 ||
      ::fsync(fd.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    return Failed(path);
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

}  // namespace gmb::cli
