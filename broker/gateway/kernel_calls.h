#ifndef GMB_BROKER_GATEWAY_KERNEL_CALLS_H_
#define GMB_BROKER_GATEWAY_KERNEL_CALLS_H_

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define GMB_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GMB_THREAD_SANITIZER
#endif
#endif

#ifdef GMB_THREAD_SANITIZER
// ThreadSanitizer follows descriptors by these, whose places gmbd's own
// definitions take. Without them a number that is used again is a race to it.
extern "C" {
ssize_t __interceptor_recvmsg(int fd, msghdr* message, int flags);
ssize_t __interceptor_sendmsg(int fd, const msghdr* message, int flags);
int __interceptor_close(int fd);
}
#endif

// The system calls that grpc_system_calls.cc stands before, past it. As in the
// C library: -1, and errno says why.
namespace gmb::broker {

#ifdef GMB_THREAD_SANITIZER
inline ssize_t KernelReceive(int fd, msghdr* message, int flags) {
  return __interceptor_recvmsg(fd, message, flags);
}
inline ssize_t KernelSend(int fd, const msghdr* message, int flags) {
  return __interceptor_sendmsg(fd, message, flags);
}
inline int KernelClose(int fd) { return __interceptor_close(fd); }
#else
inline ssize_t KernelReceive(int fd, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
inline ssize_t KernelSend(int fd, const msghdr* message, int flags) {
  return ::syscall(SYS_sendmsg, fd, message, flags);
}
inline int KernelClose(int fd) {
  return static_cast<int>(::syscall(SYS_close, fd));
}
#endif

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_KERNEL_CALLS_H_
