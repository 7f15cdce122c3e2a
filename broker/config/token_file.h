#ifndef GMB_BROKER_CONFIG_TOKEN_FILE_H_
#define GMB_BROKER_CONFIG_TOKEN_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace gmb::broker {

struct TokenFile {
  std::string token;    // secret: never logged
  std::string warning;  // empty, or that others can read the file
};

// Reads a tenant's secret: 16 to 256 bytes, without the line's end.
[[nodiscard]] absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_TOKEN_FILE_H_
