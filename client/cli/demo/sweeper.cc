// The demo: nothing of it stays, also where it is killed.
#include "client/cli/demo/sweeper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "absl/status/status.h"

namespace gmb::cli {
namespace {

// System calls alone: this is a fork of a process that may have threads.
[[noreturn]] void Sweep(int alive, int null, char* dir) {
  ::setsid();  // away from the terminal's Ctrl-C
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(null, standard);
  char nothing = 0;
  while (::read(alive, &nothing, 1) < 0 && errno == EINTR) {
  }
  std::array<char, 3> rm = {"rm"};
  std::array<char, 4> flags = {"-rf"};
  std::array<char, 3> end = {"--"};
  const std::array<char*, 5> words = {rm.data(), flags.data(), end.data(), dir,
                                      nullptr};
  ::execv("/bin/rm", words.data());
  ::_exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sweeper>> Sweeper::Start(
    const std::string& dir) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> ends = {-1, -1};
  if (!null.valid() || ::pipe(ends.data()) != 0)
    return absl::ErrnoToStatus(errno, "cannot prepare the end of the demo");
  const base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  ::fcntl(read.get(), F_SETFD, FD_CLOEXEC);
  std::string path = dir;
  const pid_t pid = ::fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0) {
    ::close(write.get());
    Sweep(read.get(), null.get(), path.data());
  }
  return std::unique_ptr<Sweeper>(new Sweeper(pid, std::move(write)));
}

Sweeper::~Sweeper() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace gmb::cli
