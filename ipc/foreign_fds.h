#ifndef GMB_IPC_FOREIGN_FDS_H_
#define GMB_IPC_FOREIGN_FDS_H_

#include "absl/status/statusor.h"

// File descriptors that a peer sends and nobody asked for (SCM_RIGHTS). To drop
// the last reference of one can block for as long as its sender likes: a TCP
// socket with SO_LINGER whose peer does not read, a file of a FUSE server. So
// they are refused by the kernel where it can (Linux 6.16), and elsewhere they
// are left in the socket that they came by, which is closed by an FdDisposer.
namespace gmb::ipc {

// The socket, and every one accepted from it later, takes no fds: a sender gets
// EPERM. Sending fds over it still works. False: this kernel cannot refuse.
bool RefuseFds(int socket);
// The opposite, for a peer that was found to be trusted after all: it may send
// fds. Nothing to do where the kernel cannot refuse.
void TakeFds(int socket);
// Whether the kernel refuses fds for this socket.
[[nodiscard]] bool RefusesFds(int socket);

// Looks at the next packet of a Unix SEQPACKET socket without taking it. True:
// fds come with it. False: none do, or no packet is there. An error is the
// kernel's; the next receive meets it too.
[[nodiscard]] absl::StatusOr<bool> NextPacketHasFds(int socket);

}  // namespace gmb::ipc

#endif  // GMB_IPC_FOREIGN_FDS_H_
