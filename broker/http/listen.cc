// HTTP: the socket that listens.
#include "broker/http/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

constexpr mode_t kMode = 0660;
constexpr int kBacklog = 16;
// Of each connection, in the kernel: what a peer that never reads can hold.
constexpr int kSendBytes = 128 << 10;

absl::Status Failed(const HttpAddress& address) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot answer HTTP at ", address.Text()));
}

// How long it is; 0: the text is no address.
socklen_t Fill(const HttpAddress& address, sockaddr_storage* storage) {
  auto* const four = reinterpret_cast<sockaddr_in*>(storage);
  if (::inet_pton(AF_INET, address.ip.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(address.port);
    return sizeof(*four);
  }
  auto* const six = reinterpret_cast<sockaddr_in6*>(storage);
  if (::inet_pton(AF_INET6, address.ip.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(address.port);
    return sizeof(*six);
  }
  return 0;
}

uint16_t PortOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return 0;
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

absl::StatusOr<HttpListener> ListenOnTcp(const HttpAddress& address) {
  sockaddr_storage storage{};
  const socklen_t size = Fill(address, &storage);
  if (size == 0) return absl::InvalidArgumentError("no address for HTTP");
  base::UniqueFd fd(::socket(storage.ss_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failed(address);
  const int on = 1;
  // A broker that starts again need not wait for its predecessor's connections.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Connections inherit it.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBytes,
               sizeof(kSendBytes));
  if (storage.ss_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Failed(address);
  }
  HttpListener listener{
      .fd = std::move(fd), .address = address, .path = std::nullopt};
  listener.address.port = PortOf(listener.fd.get());
  return listener;
}

}  // namespace

absl::StatusOr<HttpListener> ListenForHttp(const HttpAddress& address) {
  if (address.unix_path.empty()) return ListenOnTcp(address);
  GMB_ASSIGN_OR_RETURN(ipc::Listener path,
                       ipc::Listener::Listen(address.unix_path, kMode,
                                             ipc::SocketType::kStream));
  // The server closes its own.
  base::UniqueFd fd(::fcntl(path.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return Failed(address);
  return HttpListener{
      .fd = std::move(fd), .address = address, .path = std::move(path)};
}

}  // namespace gmb::broker
