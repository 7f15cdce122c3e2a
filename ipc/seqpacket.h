#ifndef GMB_IPC_SEQPACKET_H_
#define GMB_IPC_SEQPACKET_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/unique_fd.h"

namespace gmb::ipc {

// The process at the other end, as the kernel says.
struct PeerCredentials {
  pid_t pid = 0;  // 0: the peer is not visible from our pid namespace
  uid_t uid = 0;
  gid_t gid = 0;

  friend bool operator==(const PeerCredentials&,
                         const PeerCredentials&) = default;
};

// Of the process that connected the Unix socket `fd` (SO_PEERCRED). It may have
// passed the socket on since.
[[nodiscard]] absl::StatusOr<PeerCredentials> ConnectedPeer(int fd);

struct Packet {
  std::string bytes;
  std::vector<base::UniqueFd> fds;  // all close-on-exec
  // Of the process that sent this packet. Absent unless EnableCredentials was
  // called on the receiving socket.
  std::optional<PeerCredentials> credentials;
};

inline constexpr size_t kMaxPacketBytes = size_t{64} * 1024;
inline constexpr size_t kMaxFds = 253;  // the kernel's SCM_MAX_FD

// One end of a connected Unix SEQPACKET socket: packets with file descriptors
// and credentials. Owns its fd, which is non-blocking and close-on-exec.
// Move-only. Threads may send and receive at the same time; two threads that
// do the same must agree among themselves who gets which packet.
class SeqpacketSocket {
 public:
  // UNAVAILABLE: nobody listens at `path`. DEADLINE_EXCEEDED: the listener's
  // backlog stayed full. INVALID_ARGUMENT: the path is too long for a socket.
  static absl::StatusOr<SeqpacketSocket> Connect(const std::string& path,
                                                 absl::Duration timeout);

  // Takes a connected socket (accepted, inherited, of a socketpair) and makes
  // it non-blocking and close-on-exec.
  explicit SeqpacketSocket(base::UniqueFd fd);

  // true: sent; false: the socket is full. UNAVAILABLE: the peer is gone.
  // INVALID_ARGUMENT: empty, more than kMaxPacketBytes or more than kMaxFds.
  // RESOURCE_EXHAUSTED: too many fds are in flight to peers that do not read
  // (the kernel counts them against RLIMIT_NOFILE); try again later, poll
  // does not tell when. `fds` stay the caller's. `with_credentials` attaches
  // this process's pid, uid and gid. Never raises SIGPIPE.
  [[nodiscard]] absl::StatusOr<bool> TrySend(absl::string_view bytes,
                                             absl::Span<const int> fds,
                                             bool with_credentials = false);

  // nullopt: nothing there now. UNAVAILABLE: the peer has hung up (packets it
  // sent before are received first). INVALID_ARGUMENT: a packet of more than
  // kMaxPacketBytes or one whose fds could not all be received; it is gone, and
  // every fd that did arrive is closed.
  [[nodiscard]] absl::StatusOr<std::optional<Packet>> TryReceive();

  // The same for a peer that has no business sending fds. A packet with some
  // stays in the socket: FAILED_PRECONDITION from then on. Close the socket by
  // an FdDisposer.
  [[nodiscard]] absl::StatusOr<std::optional<Packet>> TryReceiveWithoutFds();

  // As Send and TryReceive, waiting for the socket. DEADLINE_EXCEEDED after
  // `timeout`.
  [[nodiscard]] absl::Status Send(absl::string_view bytes,
                                  absl::Span<const int> fds,
                                  bool with_credentials,
                                  absl::Duration timeout);
  [[nodiscard]] absl::StatusOr<Packet> Receive(absl::Duration timeout);

  // Waits for the peer to hang up; false when it has not within `timeout`.
  // Takes nothing from the socket.
  [[nodiscard]] bool AwaitHangUp(absl::Duration timeout) const;

  // Hangs up now, also where another owner of the same socket keeps it open.
  void Shutdown();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The socket is the caller's from now on.
  [[nodiscard]] base::UniqueFd Release() && { return std::move(fd_); }

  // See ConnectedPeer; compare with the credentials of a packet.
  [[nodiscard]] absl::StatusOr<PeerCredentials> peer() const {
    return ConnectedPeer(fd_.get());
  }

  // From now on received packets carry their sender's credentials
  // (SO_PASSCRED). Call it before the peer sends.
  [[nodiscard]] absl::Status EnableCredentials();

 private:
  base::UniqueFd fd_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_SEQPACKET_H_
