#ifndef GMB_BROKER_DAEMON_STORE_SETUP_H_
#define GMB_BROKER_DAEMON_STORE_SETUP_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/declared/declared.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// Of something that the broker does by itself, now, as its own user.
[[nodiscard]] AuditRecord RecordOfBroker(const std::string& action,
                                         const std::string& detail);

// For a broker that takes over: the last one had a database. FAILED_PRECONDITION:
// there is none here, so that its tenants would not be known.
[[nodiscard]] absl::Status CheckStoreIsThere(const std::string& state_dir);

// Opens operators' changes, for a start. With `fresh_state` a damaged database
// is set aside and a new one begun. The log and the audit log say so, and also
// when the database was found empty. Errors are QuotaStore's.
[[nodiscard]] absl::StatusOr<std::unique_ptr<QuotaStore>> OpenQuotaStore(
    const std::string& state_dir, bool fresh_state);

// Without the values for a time that ended while no broker ran.
[[nodiscard]] Declared WithoutEnded(Declared stored);

// The declared values that a start begins with: the file, merged into those of
// before, which are without those that have ended. A tenant that the file made and does not name any more is gone, since
// nobody uses it yet.
[[nodiscard]] Declared StartingState(
    const Declared& before, const BrokerConfig& config,
    const std::map<std::string, std::string>& uuids);

// Stores the file that a start, or a reload, has taken over, if it changed
// anything. Where the disk does not take it, it holds without.
void StoreFile(const Declared& before, const Declared& after,
               QuotaStore* store);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_STORE_SETUP_H_
