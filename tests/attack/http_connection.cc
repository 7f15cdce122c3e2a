// One connection of an attack on the gRPC socket.
#include "tests/attack/http_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "ipc/socket_path.h"

namespace gmb::attack {

base::UniqueFd ConnectNow(const std::string& path, int type) {
  const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path);
  if (!address.ok()) {
    errno = EINVAL;
    return {};
  }
  base::UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return {};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                sizeof(*address)) != 0) {
    const int why = errno;
    fd.reset();
    errno = why;
  }
  return fd;
}

bool HttpConnection::Connect(const std::string& path) {
  Close();
  fd_ = ConnectNow(path, SOCK_STREAM);
  return is_open();
}

void HttpConnection::Adopt(base::UniqueFd fd, uint32_t next_stream) {
  Close();
  fd_ = std::move(fd);
  next_stream_ = next_stream;
}

void HttpConnection::Close() {
  fd_.reset();
  unwritten_.clear();
  at_ = 0;
  next_stream_ = 1;
}

size_t HttpConnection::Write() {
  if (unwritten() == 0) return 0;
  const ssize_t written = ::send(fd_.get(), unwritten_.data() + at_,
                                 unwritten(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (written < 0) {
    if (errno != EAGAIN && errno != EINTR) Close();
    return 0;
  }
  at_ += static_cast<size_t>(written);
  if (unwritten() == 0) {
    unwritten_.clear();
    at_ = 0;
  }
  return static_cast<size_t>(written);
}

void HttpConnection::Read(std::string* kept) {
  std::array<char, 65'536> bytes;
  const ssize_t got =
      ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) {
    if (kept != nullptr) kept->append(bytes.data(), static_cast<size_t>(got));
    return;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) Close();
}

}  // namespace gmb::attack
