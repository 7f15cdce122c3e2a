#ifndef GMB_BROKER_DAEMON_STORE_SETUP_H_
#define GMB_BROKER_DAEMON_STORE_SETUP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// Opens operators' changes, for a start. With `fresh_state` a damaged database
// is set aside and a new one begun. The log and the audit log say so, and also
// when the database was found empty. Errors are QuotaStore's.
[[nodiscard]] absl::StatusOr<std::unique_ptr<QuotaStore>> OpenQuotaStore(
    const std::string& state_dir, bool fresh_state);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_STORE_SETUP_H_
