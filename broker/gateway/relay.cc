// Carries one tenant's HTTP/2 bytes to gRPC, and gRPC's back.
#include "broker/gateway/relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "ipc/foreign_fds.h"

namespace gmb::broker {
namespace {

using Buffer = std::array<char, Relay::kMaxBuffered>;

absl::Status Over() { return absl::CancelledError("it disconnected"); }

// What is there, up to a buffer; empty: nothing now. CANCELLED: a hang-up.
absl::StatusOr<absl::string_view> Receive(int from, Buffer* buffer) {
  ssize_t received = -1;
  do {
    received = ::recv(from, buffer->data(), buffer->size(), MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received > 0)
    return absl::string_view(buffer->data(), static_cast<size_t>(received));
  if (received < 0 && errno == EAGAIN) return absl::string_view();
  return Over();
}

// The same where fds may come with it: bytes are looked at before they are
// taken, since to take them is to receive the fds. A look ends with the first
// piece that has fds.
absl::StatusOr<absl::string_view> ReceiveWithoutFds(int from, Buffer* buffer) {
  iovec data{.iov_base = buffer->data(), .iov_len = buffer->size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  ssize_t there = -1;
  do {
    there = ::recvmsg(from, &message, MSG_PEEK | MSG_DONTWAIT);
  } while (there < 0 && errno == EINTR);
  if (there < 0 && errno == EAGAIN) return absl::string_view();
  if (there <= 0) return Over();
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return absl::FailedPreconditionError("it sent fds on its gRPC socket");
  const ssize_t taken =
      ::recv(from, buffer->data(), static_cast<size_t>(there), MSG_DONTWAIT);
  if (taken <= 0) return Over();
  return absl::string_view(buffer->data(), static_cast<size_t>(taken));
}

}  // namespace

absl::Status Relay::Unsent::Send(int to, absl::string_view bytes) {
  if (!empty()) {
    bytes_.append(bytes.data(), bytes.size());
    return Flush(to);
  }
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) return Over();
    if (sent < 0) break;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  if (!bytes.empty()) {
    bytes_.assign(bytes.data(), bytes.size());
    from_ = 0;
  }
  return absl::OkStatus();
}

absl::Status Relay::Unsent::Flush(int to) {
  while (!empty()) {
    const ssize_t sent =
        ::send(to, bytes_.data() + from_, bytes_.size() - from_,
               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) return Over();
    if (sent < 0) return absl::OkStatus();
    from_ += static_cast<size_t>(sent);
  }
  bytes_ = std::string();  // its memory too: most connections never need it
  from_ = 0;
  return absl::OkStatus();
}

Relay::Relay(ipc::UniqueFd client, ipc::UniqueFd grpc_end)
    : client_(std::move(client)),
      grpc_(std::move(grpc_end)),
      client_sends_no_fds_(ipc::RefusesFds(client_.get())) {}

absl::Status Relay::OnClientReady(uint32_t events, Time now) {
  if ((events & EPOLLOUT) != 0) {
    if (absl::Status sent = to_client_.Flush(client_.get()); !sent.ok())
      return sent;
    if (grpc_is_over_ && to_client_.empty()) return Over();
  }
  if ((client_events() & EPOLLIN) == 0) {
    return (events & (EPOLLHUP | EPOLLERR)) != 0 ? Over() : absl::OkStatus();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return absl::OkStatus();
  Buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const absl::StatusOr<absl::string_view> bytes =
      client_sends_no_fds_ ? Receive(client_.get(), &buffer)
                           : ReceiveWithoutFds(client_.get(), &buffer);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status judged = guard_.OnClientBytes(*bytes, now); !judged.ok())
    return judged;
  grpc_reads_ = to_grpc_.Send(grpc_.get(), *bytes).ok();
  return absl::OkStatus();
}

absl::Status Relay::OnGrpcReady(uint32_t events) {
  if ((events & EPOLLOUT) != 0) grpc_reads_ = to_grpc_.Flush(grpc_.get()).ok();
  if ((grpc_events() & EPOLLIN) == 0 ||
      (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) {
    return absl::OkStatus();
  }
  Buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const absl::StatusOr<absl::string_view> bytes = Receive(grpc_.get(), &buffer);
  if (!bytes.ok()) {
    grpc_is_over_ = true;
    return to_client_.empty() ? Over() : absl::OkStatus();
  }
  guard_.OnServerBytes(*bytes);
  return to_client_.Send(client_.get(), *bytes);
}

uint32_t Relay::client_events() const {
  if (!to_client_.empty()) return EPOLLOUT;
  const bool reads = grpc_reads_ && to_grpc_.empty();
  return reads ? static_cast<uint32_t>(EPOLLIN) : 0;
}

uint32_t Relay::grpc_events() const {
  if (grpc_is_over_) return 0;
  const bool wants_room = grpc_reads_ && !to_grpc_.empty();
  const uint32_t room = wants_room ? static_cast<uint32_t>(EPOLLOUT) : 0;
  // What the client has not read yet is enough.
  return to_client_.empty() ? EPOLLIN | room : room;
}

}  // namespace gmb::broker
