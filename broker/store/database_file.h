#ifndef GMB_BROKER_STORE_DATABASE_FILE_H_
#define GMB_BROKER_STORE_DATABASE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gmb::broker {

// Makes the file if it is not there: of mode 0600, empty, so that nobody else
// can read it from the first byte. Refuses what is no regular file.
[[nodiscard]] absl::Status MakeDatabaseFile(const std::string& path);

// Renames a damaged database to PATH.corrupt-<time>, which must not exist, and
// its journal likewise. Returns the new path.
[[nodiscard]] absl::StatusOr<std::string> SetDatabaseAside(
    const std::string& path, absl::Time now);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_DATABASE_FILE_H_
