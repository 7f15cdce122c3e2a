// Sockets that hold up whoever closes them.
#include "tests/attack/lingering_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace gmb::attack {
namespace {

constexpr int kLingerSeconds = 60;
constexpr int kSmallBuffer = 4'096;

// At a port that the kernel chooses.
absl::StatusOr<base::UniqueFd> ListenSomewhere(sockaddr_in* address) {
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &kSmallBuffer,
               sizeof(kSmallBuffer));
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(address), size) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(address),
                    &size) != 0) {
    return absl::ErrnoToStatus(errno, "cannot listen at 127.0.0.1");
  }
  return listener;
}

// A connect that a signal interrupts goes on without its caller.
absl::Status Connect(int fd, const sockaddr_in& address) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0) {
    return absl::OkStatus();
  }
  int error = errno;
  if (error == EINTR) {
    pollfd connected{.fd = fd, .events = POLLOUT, .revents = 0};
    while (::poll(&connected, 1, -1) < 0 && errno == EINTR) {
    }
    socklen_t size = sizeof(error);
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  return error == 0 ? absl::OkStatus()
                    : absl::ErrnoToStatus(error, "cannot connect to 127.0.0.1");
}

}  // namespace

absl::StatusOr<LingeringSocket> MakeLingeringSocket() {
  sockaddr_in address{};
  const absl::StatusOr<base::UniqueFd> listener = ListenSomewhere(&address);
  if (!listener.ok()) return listener.status();
  LingeringSocket pair;
  pair.poison.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(pair.poison.get(), SOL_SOCKET, SO_SNDBUF, &kSmallBuffer,
               sizeof(kSmallBuffer));
  GMB_RETURN_IF_ERROR(Connect(pair.poison.get(), address));
  pair.reader.reset(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.reader.valid()) return absl::ErrnoToStatus(errno, "accept4");
  const linger wait{.l_onoff = 1, .l_linger = kLingerSeconds};
  ::setsockopt(pair.poison.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
  const std::array<char, 4'096> bytes{};
  while (::send(pair.poison.get(), bytes.data(), bytes.size(),
                MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  return pair;
}

}  // namespace gmb::attack
