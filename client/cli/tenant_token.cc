// A tenant's token, read from a file.
#include "client/cli/tenant_token.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli {

absl::StatusOr<std::string> ReadTenantToken(const std::string& path) {
  constexpr size_t kLeastBytes = 16;
  constexpr size_t kMostBytes = 256;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 2 * kMostBytes> buffer{};
  file.read(buffer.data(), buffer.size());
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the token file (",
                     std::generic_category().message(errno), "): ", path));
  }
  std::string token(buffer.data(), static_cast<size_t>(file.gcount()));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r'))
    token.pop_back();
  if (token.size() < kLeastBytes || token.size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tenant's token has ", kLeastBytes, " to ", kMostBytes,
        " bytes: name the file that the broker's configuration names as "
        "token_file: ",
        path));
  }
  return token;
}

}  // namespace gmb::cli
