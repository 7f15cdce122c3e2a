#ifndef GMB_TESTS_KEEPER_FORKED_H_
#define GMB_TESTS_KEEPER_FORKED_H_

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "tests/component/await.h"
#include "tests/end_with_parent.h"

namespace gmb::keeper {

// A process that runs a function of the test, and tells it what has happened a
// line at a time. Killed when destroyed, and with the test. The test has no
// threads.
class Forked {
 public:
  // Says a line to the test.
  using Say = std::function<void(const std::string&)>;

  // The process waits for its death after `run`.
  explicit Forked(const std::function<void(const Say&)>& run) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    base::UniqueFd ours(ends[0]);
    const base::UniqueFd its(ends[1]);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      EndWithParent(parent);
      run([&](const std::string& line) {
        const std::string text = line + "\n";
        if (::write(its.get(), text.data(), text.size()) < 0) ::_exit(1);
      });
      while (true) ::pause();
    }
    said_ = std::move(ours);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked() { Kill(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Signal(int number) const { ::kill(pid_, number); }
  // Until it is stopped.
  void Stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Its next line; "" when it ends, or the patience does, without one.
  [[nodiscard]] std::string Line() {
    std::string line;
    char next = 0;
    pollfd entry{.fd = said_.get(), .events = POLLIN, .revents = 0};
    const int patience_ms = static_cast<int>(
        std::chrono::milliseconds(component::kPatience).count());
    while (::poll(&entry, 1, patience_ms) > 0 &&
           ::read(said_.get(), &next, 1) == 1) {
      if (next == '\n') return line;
      line.push_back(next);
    }
    return "";
  }

 private:
  pid_t pid_ = -1;
  base::UniqueFd said_;
};

}  // namespace gmb::keeper

#endif  // GMB_TESTS_KEEPER_FORKED_H_
