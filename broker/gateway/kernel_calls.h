#ifndef GMB_BROKER_GATEWAY_KERNEL_CALLS_H_
#define GMB_BROKER_GATEWAY_KERNEL_CALLS_H_

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// The system calls that grpc_system_calls.cc stands before, past it. As in the
// C library: -1, and errno says why.
namespace gmb::broker {

inline ssize_t KernelReceive(int fd, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
inline ssize_t KernelSend(int fd, const msghdr* message, int flags) {
  return ::syscall(SYS_sendmsg, fd, message, flags);
}
inline int KernelClose(int fd) {
  return static_cast<int>(::syscall(SYS_close, fd));
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_KERNEL_CALLS_H_
