// Sockets that hold up whoever closes them.
#include "tests/attack/lingering_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"

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

}  // namespace

absl::StatusOr<LingeringSocket> MakeLingeringSocket() {
  sockaddr_in address{};
  const absl::StatusOr<base::UniqueFd> listener = ListenSomewhere(&address);
  if (!listener.ok()) return listener.status();
  LingeringSocket pair;
  pair.poison.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(pair.poison.get(), SOL_SOCKET, SO_SNDBUF, &kSmallBuffer,
               sizeof(kSmallBuffer));
  if (::connect(pair.poison.get(), reinterpret_cast<sockaddr*>(&address),
                sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, "cannot connect to 127.0.0.1");
  }
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
