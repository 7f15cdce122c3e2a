// Greeting: nonces and tokens.
#include "ipc/random.h"

#include <sys/random.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace gmb::ipc {

absl::StatusOr<std::string> RandomToken(size_t bytes) {
  constexpr size_t kMaxBytes = 256;  // getrandom gives so much in one piece
  if (bytes == 0 || bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token has 1 to ", kMaxBytes, " bytes"));
  }
  std::string token(bytes, '\0');
  while (::getrandom(token.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "getrandom");
  }
  return token;
}

bool ConstantTimeEquals(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace gmb::ipc
