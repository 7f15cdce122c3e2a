#ifndef GMB_CLIENT_CLI_INTERRUPT_H_
#define GMB_CLIENT_CLI_INTERRUPT_H_

#include <csignal>
#include <stop_token>
#include <thread>

namespace gmb::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP ask for a stop instead of ending
// the process. Make it before any thread that must not be interrupted starts:
// threads inherit what is blocked. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  // Readable once a stop was asked for; for poll. -1 if the system refused one.
  [[nodiscard]] int fd() const { return stopped_fd_; }

 private:
  void WaitForSignal();

  std::stop_source stop_;
  sigset_t before_{};
  int signal_fd_ = -1;
  int stopped_fd_ = -1;
  int quit_fd_ = -1;
  std::thread thread_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_INTERRUPT_H_
