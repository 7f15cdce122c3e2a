// Greeting and slabs: packets with credentials and file descriptors.
#include "ipc/seqpacket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/foreign_fds.h"
#include "ipc/socket_path.h"

namespace gmb::ipc {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kControlBytes =
    CMSG_SPACE(kMaxFds * sizeof(int)) + CMSG_SPACE(sizeof(ucred));
using ControlBuffer = std::array<char, kControlBytes>;

absl::Status HungUp() {
  return absl::UnavailableError("the peer has closed the socket");
}

SteadyTime DeadlineAfter(absl::Duration timeout) {
  // Long enough for anyone, and far from the clock's overflow.
  const absl::Duration bounded =
      std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(bounded);
}

// Waits until `fd` is ready for `events` or has hung up.
absl::Status WaitFor(int fd, int16_t events, SteadyTime deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    // Whole days at most, so that it fits an int.
    const int wait_ms =
        static_cast<int>(std::clamp<int64_t>(left.count(), 0, 86'400'000));
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          events == POLLIN ? "the peer has not answered in time"
                           : "the peer does not read its socket");
    }
  }
}

// Blocking for the time of the call: a Unix socket does not tell when a full
// backlog has room again.
absl::Status ConnectBlocking(int fd, const sockaddr_un& address,
                             const std::string& path, absl::Duration timeout) {
  const SteadyTime deadline = DeadlineAfter(timeout);
  while (true) {
    const auto left =
        std::max(absl::FromChrono(deadline - std::chrono::steady_clock::now()),
                 absl::Milliseconds(1));  // 0 would mean for ever
    const timeval limit = absl::ToTimeval(left);
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) {
      return absl::ErrnoToStatus(errno, "setsockopt SO_SNDTIMEO");
    }
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) == 0) {
      return absl::OkStatus();
    }
    switch (errno) {
      case EINTR:
        if (std::chrono::steady_clock::now() < deadline) continue;
        [[fallthrough]];
      case EAGAIN:
        return absl::DeadlineExceededError(
            absl::StrCat("the listener does not accept connections: ", path));
      case ENOENT:
      case ECONNREFUSED:
        return absl::UnavailableError(absl::StrCat("nobody listens at ", path));
      default:
        return absl::ErrnoToStatus(errno,
                                   absl::StrCat("cannot connect to ", path));
    }
  }
}

void AttachFds(msghdr* message, absl::Span<const int> fds) {
  auto* header = reinterpret_cast<cmsghdr*>(
      static_cast<char*>(message->msg_control) + message->msg_controllen);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  message->msg_controllen += CMSG_SPACE(fds.size() * sizeof(int));
}

void AttachCredentials(msghdr* message) {
  const ucred self{.pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid()};
  auto* header = reinterpret_cast<cmsghdr*>(
      static_cast<char*>(message->msg_control) + message->msg_controllen);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_CREDENTIALS;
  header->cmsg_len = CMSG_LEN(sizeof(self));
  std::memcpy(CMSG_DATA(header), &self, sizeof(self));
  message->msg_controllen += CMSG_SPACE(sizeof(self));
}

void TakeControl(msghdr* message, Packet* packet) {
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_len < CMSG_LEN(0))
      continue;
    const size_t bytes = header->cmsg_len - CMSG_LEN(0);
    if (header->cmsg_type == SCM_RIGHTS) {
      for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
        packet->fds.emplace_back(fd);
      }
    } else if (header->cmsg_type == SCM_CREDENTIALS && bytes >= sizeof(ucred)) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
      packet->credentials = PeerCredentials{
          .pid = sender.pid, .uid = sender.uid, .gid = sender.gid};
    }
  }
}

absl::Status SendError(int error) {
  switch (error) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
    case ECONNREFUSED:
      return HungUp();
    case ETOOMANYREFS:
      return absl::ResourceExhaustedError(
          "too many fds are in flight to peers that do not read them: raise "
          "RLIMIT_NOFILE");
    case EMSGSIZE:
      return absl::InvalidArgumentError(
          "the packet is larger than the socket's send buffer");
    default:
      return absl::ErrnoToStatus(error, "sendmsg");
  }
}

}  // namespace

absl::StatusOr<SeqpacketSocket> SeqpacketSocket::Connect(
    const std::string& path, absl::Duration timeout) {
  GMB_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  GMB_RETURN_IF_ERROR(ConnectBlocking(fd.get(), address, path, timeout));
  return SeqpacketSocket(std::move(fd));
}

SeqpacketSocket::SeqpacketSocket(base::UniqueFd fd) : fd_(std::move(fd)) {
  ::fcntl(fd_.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

absl::StatusOr<bool> SeqpacketSocket::TrySend(absl::string_view bytes,
                                              absl::Span<const int> fds,
                                              bool with_credentials) {
  // An empty packet cannot be told from a hang-up.
  if (bytes.empty() || bytes.size() > kMaxPacketBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a packet has 1 to ", kMaxPacketBytes,
                     " bytes; this one has ", bytes.size()));
  }
  if (fds.size() > kMaxFds) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a packet has at most ", kMaxFds, " fds; this one has ", fds.size()));
  }
  iovec data{.iov_base = const_cast<char*>(bytes.data()),
             .iov_len = bytes.size()};
  alignas(cmsghdr) ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  if (!fds.empty()) AttachFds(&message, fds);
  if (with_credentials) AttachCredentials(&message);
  while (::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return false;
    return SendError(errno);
  }
  return true;
}

absl::StatusOr<std::optional<Packet>> SeqpacketSocket::TryReceive() {
  // Not zeroed: the kernel writes what is used of it.
  std::array<char, kMaxPacketBytes>
      bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr)
      ControlBuffer control;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  msghdr message{};
  const auto receive = [&] {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    return ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  };
  ssize_t received = receive();
  // A peer that closes with packets of ours unread leaves one ECONNRESET in
  // front of what it sent before.
  if (received < 0 && errno == ECONNRESET) received = receive();
  while (received < 0 && errno == EINTR) received = receive();
  if (received < 0) {
    if (errno == EAGAIN) return std::nullopt;
    if (errno == ECONNRESET || errno == ENOTCONN) return HungUp();
    return absl::ErrnoToStatus(errno, "recvmsg");
  }
  Packet packet;
  TakeControl(&message, &packet);
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the peer sent a packet of more than ", kMaxPacketBytes, " bytes"));
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError(
        "not all fds of a packet could be received: raise RLIMIT_NOFILE of "
        "this process");
  }
  if (received == 0) return HungUp();
  packet.bytes.assign(bytes.data(), static_cast<size_t>(received));
  return packet;
}

absl::StatusOr<std::optional<Packet>> SeqpacketSocket::TryReceiveWithoutFds() {
  const absl::StatusOr<bool> has_fds = NextPacketHasFds(fd_.get());
  if (has_fds.ok() && *has_fds) {
    return absl::FailedPreconditionError("sent fds; a client sends none");
  }
  return TryReceive();
}

absl::Status SeqpacketSocket::Send(absl::string_view bytes,
                                   absl::Span<const int> fds,
                                   bool with_credentials,
                                   absl::Duration timeout) {
  const SteadyTime deadline = DeadlineAfter(timeout);
  while (true) {
    GMB_ASSIGN_OR_RETURN(const bool sent,
                         TrySend(bytes, fds, with_credentials));
    if (sent) return absl::OkStatus();
    GMB_RETURN_IF_ERROR(WaitFor(fd_.get(), POLLOUT, deadline));
  }
}

absl::StatusOr<Packet> SeqpacketSocket::Receive(absl::Duration timeout) {
  const SteadyTime deadline = DeadlineAfter(timeout);
  while (true) {
    GMB_ASSIGN_OR_RETURN(std::optional<Packet> packet, TryReceive());
    if (packet.has_value()) return *std::move(packet);
    GMB_RETURN_IF_ERROR(WaitFor(fd_.get(), POLLIN, deadline));
  }
}

bool SeqpacketSocket::AwaitHangUp(absl::Duration timeout) const {
  return WaitFor(fd_.get(), POLLRDHUP, DeadlineAfter(timeout)).ok();
}

void SeqpacketSocket::Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

absl::StatusOr<PeerCredentials> ConnectedPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::ErrnoToStatus(errno, "getsockopt SO_PEERCRED");
  }
  return PeerCredentials{.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
}

absl::Status SeqpacketSocket::EnableCredentials() {
  const int on = 1;
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
    return absl::ErrnoToStatus(errno, "setsockopt SO_PASSCRED");
  }
  return absl::OkStatus();
}

}  // namespace gmb::ipc
