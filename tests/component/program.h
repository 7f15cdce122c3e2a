#ifndef GMB_TESTS_COMPONENT_PROGRAM_H_
#define GMB_TESTS_COMPONENT_PROGRAM_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace gmb::component {

// A program started by a test, with its outputs in files, so that it never
// waits for the test to read them. Killed when destroyed, and with the test.
class Program {
 public:
  // Outputs go to DIRECTORY/NAME.out and DIRECTORY/NAME.err.
  Program(const std::string& directory, const std::string& name,
          const std::vector<std::string>& argv);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Signal(int number) const;
  [[nodiscard]] bool IsRunning();
  // Its exit code, 128 + n after signal n, or -1 when it just does not end.
  [[nodiscard]] int AwaitExit();

  [[nodiscard]] std::string Out() const;
  [[nodiscard]] std::string Err() const;
  // False when the program has ended, or the patience is over, without it.
  [[nodiscard]] bool AwaitOut(const std::string& text);
  [[nodiscard]] bool AwaitErr(const std::string& text);

  // "" or what a sanitizer has said.
  [[nodiscard]] std::string SanitizerReport() const;

 private:
  [[nodiscard]] bool AwaitIn(const std::string& file, const std::string& text);

  const std::string out_;
  const std::string err_;
  pid_t pid_ = -1;
  int exit_code_ = -1;  // once it has ended
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_PROGRAM_H_
