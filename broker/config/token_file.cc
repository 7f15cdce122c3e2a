// The broker's start: reads the secret of a tenant.
#include "broker/config/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/regular_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace gmb::broker {

absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path) {
  // Not to wait where somebody put a pipe.
  const base::UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid())
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the token file ", path));
  GMB_ASSIGN_OR_RETURN(
      const struct stat info,
      base::LookAtRegularFile(fd.get(), "the token file", path));
  std::array<char, 512> buffer{};
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n < 0)
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot read the token file ", path));

  TokenFile file{.token = std::string(buffer.data(), static_cast<size_t>(n)),
                 .warning = ""};
  while (!file.token.empty() &&
         (file.token.back() == '\n' || file.token.back() == '\r'))
    file.token.pop_back();
  if (file.token.size() < 16 || file.token.size() > 256) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token has 16 to 256 bytes: make one with `head -c 32 "
                     "/dev/urandom | base64`: ",
                     path));
  }
  if ((info.st_mode & S_IROTH) != 0) {
    file.warning =
        absl::StrCat("every user can read the token file: chmod o-r ", path);
  }
  return file;
}

}  // namespace gmb::broker
