#ifndef GMB_BROKER_GATEWAY_GRPC_SYSTEM_CALLS_H_
#define GMB_BROKER_GATEWAY_GRPC_SYSTEM_CALLS_H_

#include <memory>

#include "absl/status/status.h"
#include "broker/gateway/guarded_socket.h"

// gRPC reads, writes and closes a connection by recvmsg, sendmsg and close of
// the C library, and offers no place between itself and them. A program that
// links this file has its own three of these functions, which the dynamic
// linker prefers for every library of the process: an fd that is guarded goes
// to its GuardedSocket, every other one to the kernel.
//
// Any thread.
namespace gmb::broker {

// From now until gRPC closes it, `fd` is what `socket` guards. Call it before
// gRPC has the fd. RESOURCE_EXHAUSTED: its number is beyond kMostFds.
[[nodiscard]] absl::Status GuardUntilClosed(
    int fd, std::shared_ptr<GuardedSocket> socket);

// Linux's own default for fs.nr_open.
inline constexpr int kMostFds = 1 << 20;

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_GRPC_SYSTEM_CALLS_H_
