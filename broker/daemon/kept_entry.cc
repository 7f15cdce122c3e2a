// The simplest things that a keeper has.
#include "broker/daemon/kept_entry.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {

absl::StatusOr<base::UniqueFd> DuplicateKept(int fd) {
  base::UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (duplicate.valid()) return duplicate;
  return absl::ErrnoToStatus(errno, "cannot duplicate a kept fd");
}

absl::Status PutFd(absl::string_view key, int fd, KeeperClient* client) {
  GMB_ASSIGN_OR_RETURN(base::UniqueFd duplicate, DuplicateKept(fd));
  return client->Put(
      {.key = std::string(key), .fds = {Share(std::move(duplicate))}});
}

void RemoveKept(const std::string& key, KeeperClient* client) {
  const absl::Status removed = client->Remove(key);
  if (removed.ok() || absl::IsNotFound(removed)) return;
  WarnOfNotRemoved(key, removed);
}

void WarnOfNotRemoved(absl::string_view key, const absl::Status& why) {
  LogEvent(LogLevel::kWarning, "not_removed",
           {{"message", absl::StrCat(key, ": ", why.message())}});
}

}  // namespace gmb::broker
