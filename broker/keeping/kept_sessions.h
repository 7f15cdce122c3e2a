#ifndef GMB_BROKER_KEEPING_KEPT_SESSIONS_H_
#define GMB_BROKER_KEEPING_KEPT_SESSIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "broker/keeping/keeper_client.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// The parts of a session that are kept, so that its process need not greet
// again.
struct KeptSession {
  SharedFd socket;  // its handle connection
  SharedFd pidfd;
  SharedFd gate_page;
};

// Puts sessions into the keeper, and takes them out. Thread-safe; blocks as
// KeeperClient does.
class KeptSessions {
 public:
  // Both outlive it.
  KeptSessions(KeeperClient* client, ipc::FdDisposer* disposer)
      : client_(client), disposer_(disposer) {}

  // Before its process is welcomed. The fds stay the caller's.
  // FAILED_PRECONDITION: it has no pidfd, so that nobody could tell whether it
  // lives; others as KeeperClient::Put. The session ends with this broker then.
  absl::Status Keep(uint64_t session, int socket, const SharedFd& pidfd,
                    int gate_page);
  // When it has ended; one that was not kept is fine.
  absl::Status End(uint64_t session);

  // "session/17", and back.
  [[nodiscard]] static std::string KeyOf(uint64_t session);
  [[nodiscard]] static std::optional<uint64_t> SessionOf(absl::string_view key);
  // INVALID_ARGUMENT: it is not what Keep puts.
  [[nodiscard]] static absl::StatusOr<KeptSession> Of(const Kept& kept);

 private:
  KeeperClient* const client_;
  ipc::FdDisposer* const disposer_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_KEPT_SESSIONS_H_
