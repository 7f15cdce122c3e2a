#ifndef GMB_BROKER_DAEMON_CHECK_DIRECTORIES_H_
#define GMB_BROKER_DAEMON_CHECK_DIRECTORIES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// Looks at the directories as a start would, for `gmbd --check`. Nothing is
// made or changed there. An existing lock is shared for a moment: a broker that
// starts just then is refused.

// OK: the directory is there or can be made, takes files, and no broker has it.
[[nodiscard]] absl::Status CheckDirectory(const std::string& path);

// The declared values, as stored in the directory, read from a copy, so that
// they are not brought up to date by a check. Nothing is stored where there is
// no database. UNAVAILABLE where no copy can be made; other errors are
// QuotaStore's.
[[nodiscard]] absl::StatusOr<Declared> ReadStored(const std::string& state_dir);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CHECK_DIRECTORIES_H_
