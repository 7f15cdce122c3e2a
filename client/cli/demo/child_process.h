#ifndef GMB_CLIENT_CLI_DEMO_CHILD_PROCESS_H_
#define GMB_CLIENT_CLI_DEMO_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gmb::cli {

// A program started by this one, which it does not outlive: the kernel kills it
// when the thread that started it ends (so start it from one that stays), and
// the destructor kills and reaps it. It is in a process group of its own, or in
// `group`, away from the terminal's Ctrl-C. Move-only.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command;  // a path and arguments
    int stdin_fd = -1;                 // -1: /dev/null
    int stdout_fd = -1;                // -1: the log
    std::string log_path;              // standard error; appended to
    pid_t group = 0;                   // 0: a new one
  };
  // The status says why the program could not be started.
  [[nodiscard]] static absl::StatusOr<ChildProcess> Start(
      const Options& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Waits until it has ended and says how: "exit code 0", "signal 9".
  // DEADLINE_EXCEEDED while it runs.
  [[nodiscard]] absl::StatusOr<std::string> Wait(absl::Time deadline);
  // It runs, as far as is known without waiting.
  [[nodiscard]] bool running();

 private:
  ChildProcess(pid_t pid, int pid_fd) : pid_(pid), pid_fd_(pid_fd) {}

  pid_t pid_ = -1;     // -1: moved from
  int pid_fd_ = -1;    // readable once it has ended
  std::string ended_;  // how; empty: not reaped yet
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_CHILD_PROCESS_H_
