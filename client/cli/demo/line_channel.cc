// The demo: lines of text between it and its actors.
#include "client/cli/demo/line_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace gmb::cli {
namespace {

int PollTimeout(absl::Time deadline) {
  const absl::Duration left =
      std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(
      absl::ToInt64Milliseconds(left + absl::Milliseconds(1)));
}

}  // namespace

absl::StatusOr<ChannelPair> LineChannel::Pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  return ChannelPair{LineChannel(fds[0]), LineChannel(fds[1])};
}

LineChannel::LineChannel(LineChannel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      received_(std::move(other.received_)) {}

LineChannel& LineChannel::operator=(LineChannel&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(received_, other.received_);
  return *this;
}

LineChannel::~LineChannel() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LineChannel::Send(std::string line) const {
  line += '\n';
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n =
        send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError("the other process is gone");
    sent += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status LineChannel::ReadMore() {
  std::array<char, 4096> bytes{};
  const ssize_t n = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n > 0) {
    received_.append(bytes.data(), static_cast<size_t>(n));
    return absl::OkStatus();
  }
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return absl::OkStatus();
  return absl::UnavailableError("the other process is gone");
}

absl::StatusOr<std::string> LineChannel::Receive(absl::Time deadline,
                                                 int interrupt_fd) {
  while (true) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    // poll passes over a descriptor of -1.
    std::array<pollfd, 2> fds = {
        {{.fd = fd_, .events = POLLIN, .revents = 0},
         {.fd = interrupt_fd, .events = POLLIN, .revents = 0}}};
    const int ready = poll(fds.data(), fds.size(), PollTimeout(deadline));
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if ((fds[1].revents & POLLIN) != 0)
      return absl::CancelledError("interrupted");
    if (ready == 0 && absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the other process does not answer");
    }
    if (fds[0].revents == 0) continue;
    GMB_RETURN_IF_ERROR(ReadMore());
  }
}

}  // namespace gmb::cli
