// `gmb top`: a terminal's whole screen.
#include "client/cli/top/terminal_screen.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace gmb::cli::top {
namespace {

// Sequences that terminals have had since the VT100 and xterm.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kClearToEndOfLine[] = "\x1b[K";

}  // namespace

TerminalScreen::TerminalScreen(int in, int out) : out_(out) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGWINCH);
  sigaddset(&signals, SIGTSTP);
  sigaddset(&signals, SIGCONT);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (isatty(in) == 1 && tcgetattr(in, &modes_before_) == 0) key_fd_ = in;
  Enter();
}

TerminalScreen::~TerminalScreen() {
  Leave();
  if (signal_fd_ >= 0) close(signal_fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void TerminalScreen::Enter() {
  if (key_fd_ >= 0) {
    termios modes = modes_before_;
    modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    tcsetattr(key_fd_, TCSANOW, &modes);
  }
  (void)Write(kEnter);
  entered_ = true;
  shown_.clear();
}

void TerminalScreen::Leave() {
  if (!entered_) return;
  entered_ = false;
  (void)Write(kLeave);
  if (key_fd_ >= 0) tcsetattr(key_fd_, TCSANOW, &modes_before_);
}

bool TerminalScreen::Draw(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    // A line that is there already is not sent again: a screen that stands
    // still costs nothing, over a slow line either.
    if (i < shown_.size() && shown_[i] == lines[i]) continue;
    absl::StrAppend(&text, "\x1b[", i + 1, ";1H", lines[i], kClearToEndOfLine);
  }
  if (lines.size() < shown_.size())
    absl::StrAppend(&text, "\x1b[", lines.size() + 1, ";1H\x1b[J");
  shown_ = lines;
  return Write(text);
}

bool TerminalScreen::Took(int signal) const {
  bool took = false;
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof(info)) ==
         static_cast<ssize_t>(sizeof(info))) {
    took = took || info.ssi_signo == static_cast<uint32_t>(signal);
  }
  return took;
}

void TerminalScreen::TakeSignal() {
  if (Took(SIGTSTP)) {
    Leave();
    kill(0, SIGSTOP);  // as Ctrl-Z does: all that runs in the foreground
    // This thread may run on a little before the process stands still.
    while (!Took(SIGCONT)) {
      pollfd signals{.fd = signal_fd_, .events = POLLIN, .revents = 0};
      (void)poll(&signals, 1, -1);
    }
    Enter();
  } else {
    shown_.clear();
    (void)Write("\x1b[2J");
  }
}

bool TerminalScreen::Write(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(out_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room{.fd = out_, .events = POLLOUT, .revents = 0};
      (void)poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace gmb::cli::top
