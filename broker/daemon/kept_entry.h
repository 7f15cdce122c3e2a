#ifndef GMB_BROKER_DAEMON_KEPT_ENTRY_H_
#define GMB_BROKER_DAEMON_KEPT_ENTRY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "broker/keeping/keeper_client.h"

// Entries of the keeper that have one fd and no record.
namespace gmb::broker {

[[nodiscard]] absl::StatusOr<base::UniqueFd> DuplicateKept(int fd);

// The fd stays the caller's.
[[nodiscard]] absl::Status PutFd(absl::string_view key, int fd,
                                 KeeperClient* client);

// Where it cannot be removed, the log says so: the next broker finds it.
void RemoveKept(const std::string& key, KeeperClient* client);
void WarnOfNotRemoved(absl::string_view key, const absl::Status& why);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_KEPT_ENTRY_H_
