// Which process is the broker.
#include "client/session/broker_process.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/session/socket_dir.h"
#include "ipc/pidfd.h"
#include "ipc/seqpacket.h"

namespace gmb::internal {
namespace {

constexpr absl::Duration kConnectTime = absl::Seconds(10);

}  // namespace

absl::StatusOr<BrokerProcess> FindBrokerProcess(const std::string& socket_dir) {
  GMB_ASSIGN_OR_RETURN(const SocketDir dir, SocketDir::Open(socket_dir));
  GMB_ASSIGN_OR_RETURN(const SocketDir admin,
                       SocketDir::Open(absl::StrCat(dir.name(), "/admin")));
  GMB_ASSIGN_OR_RETURN(
      const ipc::SeqpacketSocket socket,
      ipc::SeqpacketSocket::Connect(admin.handle_path(), kConnectTime));
  GMB_ASSIGN_OR_RETURN(const ipc::PeerCredentials peer, socket.peer());
  absl::StatusOr<base::UniqueFd> pidfd =
      ipc::OpenPeerPidfd(socket.fd(), peer.pid);
  if (!pidfd.ok() || peer.pid <= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the broker at ", dir.name(),
                     " is of another pid namespace: run this where it runs"));
  }
  return BrokerProcess{peer.pid, peer.uid, *std::move(pidfd)};
}

}  // namespace gmb::internal
