// Signals that end a command in order.
#include "client/cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace gmb::cli {
namespace {

void Raise(int event_fd) {
  const uint64_t one = 1;
  // An eventfd takes a one unless it is full, and then it is readable anyway.
  (void)!write(event_fd, &one, sizeof(one));
}

}  // namespace

Interrupt::Interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  stopped_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  quit_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { WaitForSignal(); });
}

Interrupt::~Interrupt() {
  Raise(quit_fd_);
  thread_.join();
  for (const int fd : {signal_fd_, stopped_fd_, quit_fd_}) {
    if (fd >= 0) close(fd);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::WaitForSignal() {
  std::array<pollfd, 2> fds = {
      {{.fd = signal_fd_, .events = POLLIN, .revents = 0},
       {.fd = quit_fd_, .events = POLLIN, .revents = 0}}};
  while (poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) return;
  }
  if ((fds[0].revents & POLLIN) == 0) return;
  signalfd_siginfo info{};
  if (read(signal_fd_, &info, sizeof(info)) < 0) return;
  Raise(stopped_fd_);
  stop_.request_stop();
}

}  // namespace gmb::cli
