#ifndef GMB_CLIENT_CLI_TOP_TERMINAL_SCREEN_H_
#define GMB_CLIENT_CLI_TOP_TERMINAL_SCREEN_H_

#include <termios.h>

#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmb::cli::top {

// A terminal's whole screen, beside what was on it before, which comes back when
// this ends. Keys come one by one and are not shown; Ctrl-C is still SIGINT. One
// at a time, on one thread; make it before other threads, since it blocks the
// signals that fd() tells of.
class TerminalScreen {
 public:
  // Keys are read from `in` if that is a terminal, too.
  TerminalScreen(int in, int out);
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  // Shows the lines, from the top. False: the terminal is gone.
  [[nodiscard]] bool Draw(const std::vector<std::string>& lines);

  // Readable after the terminal's size changed, or Ctrl-Z; -1: not to be had.
  [[nodiscard]] int signal_fd() const { return signal_fd_; }
  // After that: stops this process where Ctrl-Z asked for it, and goes on when
  // it is continued. All has to be drawn anew.
  void TakeSignal();
  // -1: there is no terminal to read keys from.
  [[nodiscard]] int key_fd() const { return key_fd_; }

 private:
  // Takes all that have come; whether it was among them.
  [[nodiscard]] bool Took(int signal) const;
  void Enter();
  void Leave();
  bool Write(absl::string_view text);

  const int out_;
  int key_fd_ = -1;
  int signal_fd_ = -1;
  sigset_t before_{};
  termios modes_before_{};
  bool entered_ = false;
  std::vector<std::string> shown_;
};

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_TERMINAL_SCREEN_H_
