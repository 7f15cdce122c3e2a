#ifndef GMB_TESTS_COMPONENT_GMBD_PROCESS_H_
#define GMB_TESTS_COMPONENT_GMBD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace gmb {

// A real gmbd, or another program, with its standard error. Killed when
// destroyed.
class GmbdProcess {
 public:
  // `fd_limit` 0: as the test's own. GMB_PROGRAM_DIR is where the programs are.
  explicit GmbdProcess(const std::vector<std::string>& arguments,
                       unsigned fd_limit = 0);
  ~GmbdProcess();
  GmbdProcess(const GmbdProcess&) = delete;
  GmbdProcess& operator=(const GmbdProcess&) = delete;

  // Reads on until the log has `text`; false when the program ends without it
  // or 20 s pass.
  [[nodiscard]] bool WaitForLog(const std::string& text);
  // Reads what is there, or comes within 20 s. False: nothing.
  [[nodiscard]] bool ReadMore();
  void Signal(int number) const;
  // Its exit code, 128 + n after signal n, or -1 when it runs for another 20 s.
  [[nodiscard]] int WaitForExit();

  [[nodiscard]] const std::string& log() const { return log_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  base::UniqueFd stderr_;
  pid_t pid_;  // after stderr_, which its making fills
  std::string log_;
};

// Where a program of the build is, for a shell.
[[nodiscard]] std::string ProgramPath(const std::string& name);

// Runs the gmb command to its end; its exit code and all that it printed.
struct CommandResult {
  int exit_code;
  std::string output;
};
[[nodiscard]] CommandResult RunGmb(const std::vector<std::string>& arguments);

}  // namespace gmb

#endif  // GMB_TESTS_COMPONENT_GMBD_PROCESS_H_
