// Stands between gRPC and the socket of a tenant's client.
#include "broker/gateway/guarded_socket.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "broker/gateway/kernel_calls.h"
#include "ipc/foreign_fds.h"

namespace gmb::broker {
namespace {

// The front of a message's buffers, `most` bytes at the most.
class Front {
 public:
  Front(const msghdr& message, size_t most) {
    for (size_t i = 0; i < message.msg_iovlen && count_ < buffers_.size();
         ++i) {
      const iovec& buffer = message.msg_iov[i];
      const size_t length = std::min(buffer.iov_len, most);
      if (length > 0) {
        buffers_[count_++] = {.iov_base = buffer.iov_base, .iov_len = length};
      }
      most -= length;
    }
  }
  // A message of them without control data, of `length` bytes at the most.
  msghdr Message() {
    msghdr message{};
    message.msg_iov = buffers_.data();
    message.msg_iovlen = count_;
    return message;
  }

 private:
  std::array<iovec, 8> buffers_{};
  size_t count_ = 0;
};

// The first `length` bytes of the message, piece by piece.
absl::InlinedVector<absl::string_view, 8> Pieces(const msghdr& message,
                                                 size_t length) {
  absl::InlinedVector<absl::string_view, 8> pieces;
  for (size_t i = 0; i < message.msg_iovlen && length > 0; ++i) {
    const size_t piece = std::min(message.msg_iov[i].iov_len, length);
    pieces.emplace_back(static_cast<const char*>(message.msg_iov[i].iov_base),
                        piece);
    length -= piece;
  }
  return pieces;
}

// Bytes, with the kernel's own, that were sent and not read.
size_t Unread(int fd) {
  int bytes = 0;
  if (::ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<size_t>(bytes);
}

// So that answers that nobody reads fill it to kMostUnread and further. An epoll
// that watches the socket gets an edge by it.
void MakeRoom(int fd) {
  const int room = static_cast<int>(2 * GuardedSocket::kMostUnread);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

// Nobody waits for an answer any more, whatever lies unread.
bool HasGone(int fd) {
  pollfd look{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0;
}

absl::Status SentFds() {
  return absl::FailedPreconditionError("it sent fds on its gRPC socket");
}

// How much can be taken without receiving fds: bytes are looked at before they
// are taken, since to take them is to receive the fds. A look ends with the
// first piece that has fds, and `has_fds` says that it has. Else as recvmsg.
ssize_t LookForFds(int fd, msghdr message, int flags, bool* has_fds) {
  const ssize_t there = KernelReceive(fd, &message, flags | MSG_PEEK);
  *has_fds = there > 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return there;
}

}  // namespace

GuardedSocket::GuardedSocket(int fd, std::shared_ptr<CallPace> calls,
                             ipc::FdDisposer* disposer, std::string door,
                             std::function<void()> on_news)
    : fd_(fd),
      calls_(std::move(calls)),
      door_(std::move(door)),
      client_sends_no_fds_(ipc::RefusesFds(fd)),
      disposer_(disposer),
      on_news_(std::move(on_news)) {
  // Urgent bytes stay among the others: a look and a read see the same ones
  // then, and neither drops an urgent byte with its fds.
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
  MakeRoom(fd);
}

ssize_t GuardedSocket::Receive(msghdr* message, int flags) {
  base::MutexLock lock(&mu_);
  switch (MayRead()) {
    case Readiness::kRead:
      break;
    case Readiness::kNotNow:
      errno = EAGAIN;
      return -1;
    case Readiness::kOver:
      errno = ECONNRESET;
      return -1;
  }
  size_t most = kMostRead;
  const bool calls_wait =
      !calls_->AllowsOne(this, std::chrono::steady_clock::now());
  if (!client_sends_no_fds_ || calls_wait) {
    const ssize_t allowed = LookAhead(*message, most, flags, calls_wait);
    if (allowed <= 0) return allowed;
    most = static_cast<size_t>(allowed);
  }
  const ssize_t received = Take(message, most, flags);
  const int error = errno;
  StopWaiting();  // once what was read is counted
  errno = error;
  return received;
}

ssize_t GuardedSocket::Take(msghdr* message, size_t most, int flags) {
  Front front(*message, most);
  msghdr bounded = front.Message();
  const ssize_t received = KernelReceive(fd_, &bounded, flags | MSG_DONTWAIT);
  message->msg_flags = bounded.msg_flags;
  message->msg_controllen = 0;
  message->msg_namelen = 0;
  if (received <= 0) return received;
  if ((bounded.msg_flags & MSG_CTRUNC) != 0) {
    Break(SentFds());
  } else {
    Judge(bounded, static_cast<size_t>(received));
  }
  if (breach_.ok()) return received;
  errno = ECONNRESET;
  return -1;
}

ssize_t GuardedSocket::LookAhead(const msghdr& message, size_t most, int flags,
                                 bool calls_wait) {
  bool has_fds = false;
  Front front(message, most);
  const msghdr look = front.Message();
  const ssize_t there = LookForFds(fd_, look, flags | MSG_DONTWAIT, &has_fds);
  if (there <= 0) return there;
  if (has_fds) {
    Break(SentFds());
    errno = ECONNRESET;
    return -1;
  }
  if (!calls_wait) return there;
  const size_t before_call =
      guard_.BytesBeforeCall(Pieces(look, static_cast<size_t>(there)).front());
  if (before_call > 0) return static_cast<ssize_t>(before_call);
  if (HasGone(fd_)) {
    errno = ECONNRESET;
    return -1;
  }
  if (!std::exchange(call_waits_, true)) {
    calls_->Wait(this);
    if (on_news_ != nullptr) on_news_();
  }
  errno = EAGAIN;
  return -1;
}

GuardedSocket::Readiness GuardedSocket::MayRead() {
  if (hung_up_ || !breach_.ok()) return Readiness::kOver;
  // Looked at once for each read that brought something. gRPC waits for an edge
  // of epoll then: the client's next read of an answer is one.
  if (!read_since_look_) return Readiness::kRead;
  if (Unread(fd_) > kMostUnread) return Readiness::kNotNow;
  read_since_look_ = false;
  return Readiness::kRead;
}

void GuardedSocket::Judge(const msghdr& message, size_t received) {
  read_since_look_ = true;
  const auto now = std::chrono::steady_clock::now();
  const uint64_t calls_before = guard_.calls();
  for (const absl::string_view bytes : Pieces(message, received)) {
    absl::Status judged = guard_.OnClientBytes(bytes, now);
    if (!judged.ok()) return Break(std::move(judged));
  }
  const uint64_t calls = guard_.calls() - calls_before;
  if (calls > 0) calls_->Count(static_cast<double>(calls), now);
}

void GuardedSocket::StopWaiting() {
  if (std::exchange(call_waits_, false)) calls_->Leave(this);
}

void GuardedSocket::Break(absl::Status breach) {
  breach_ = std::move(breach);
  if (on_news_ != nullptr) on_news_();
}

ssize_t GuardedSocket::Send(const msghdr* message, int flags) {
  // The lock is held throughout: whatever the client answers is judged after
  // the guard knows what it answers.
  base::MutexLock lock(&mu_);
  const ssize_t sent = KernelSend(fd_, message, flags | MSG_DONTWAIT);
  if (sent <= 0) return sent;
  for (const absl::string_view bytes :
       Pieces(*message, static_cast<size_t>(sent))) {
    guard_.OnServerBytes(bytes);
  }
  return sent;
}

void GuardedSocket::Close() {
  base::UniqueFd fd(fd_);  // closed here, after the lock, without a disposer
  base::MutexLock lock(&mu_);
  closed_ = true;
  StopWaiting();
  ::shutdown(fd_, SHUT_RDWR);  // gRPC's epoll set still has it (fd_disposer.h)
  if (disposer_ != nullptr) disposer_->Dispose(std::move(fd), door_);
  if (on_news_ != nullptr) on_news_();
}

bool GuardedSocket::TryAgain() {
  base::MutexLock lock(&mu_);
  if (!call_waits_ || closed_) return false;
  if (calls_->Offer(this, std::chrono::steady_clock::now())) MakeRoom(fd_);
  return true;
}

void GuardedSocket::HangUp() {
  base::MutexLock lock(&mu_);
  hung_up_ = true;
  if (!closed_) ::shutdown(fd_, SHUT_RDWR);
}

void GuardedSocket::Leave() {
  base::MutexLock lock(&mu_);
  on_news_ = nullptr;
  disposer_ = nullptr;
}

absl::Status GuardedSocket::breach() const {
  base::MutexLock lock(&mu_);
  return breach_;
}

double GuardedSocket::CallsOfBurst(FrameGuard::Time now) const {
  base::MutexLock lock(&mu_);
  return guard_.CallsOfBurst(now);
}

bool GuardedSocket::closed() const {
  base::MutexLock lock(&mu_);
  return closed_;
}

}  // namespace gmb::broker
