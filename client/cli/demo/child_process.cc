// The demo: programs that it starts and does not leave behind.
#include "client/cli/demo/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gmb::cli {
namespace {

// Everything that the child needs, made before the fork: after it only system
// calls are safe, since other threads may have held any lock.
struct Launch {
  std::vector<char*> arguments;
  int stdin_fd;
  int stdout_fd;
  int stderr_fd;
  pid_t group;
  pid_t parent;
  int error_fd;  // takes errno when the program cannot be started
};

[[noreturn]] void Fail(const Launch& launch) {
  const int error = errno;
  (void)!write(launch.error_fd, &error, sizeof(error));
  _exit(127);
}

[[noreturn]] void RunChild(const Launch& launch) {
  setpgid(0, launch.group);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(launch);
  if (getppid() != launch.parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (dup2(launch.stdin_fd, STDIN_FILENO) < 0 ||
      dup2(launch.stdout_fd, STDOUT_FILENO) < 0 ||
      dup2(launch.stderr_fd, STDERR_FILENO) < 0) {
    Fail(launch);
  }
  execv(launch.arguments[0], launch.arguments.data());
  Fail(launch);
}

int OpenPidFd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

std::string HowItEnded(int status) {
  if (WIFEXITED(status)) return absl::StrCat("exit code ", WEXITSTATUS(status));
  return absl::StrCat("signal ", WTERMSIG(status));
}

// errno of the child, or 0 when the program started and the pipe closed.
int ReadLaunchError(int fd) {
  int error = 0;
  ssize_t n = 0;
  do {
    n = read(fd, &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  return n == sizeof(error) ? error : 0;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log_fd = open(options.log_path.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  std::array<int, 2> error_pipe = {-1, -1};
  if (null_fd < 0 || log_fd < 0 || pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    const absl::Status status = absl::ErrnoToStatus(
        errno, absl::StrCat("cannot prepare ", options.command[0]));
    for (const int fd : {null_fd, log_fd}) {
      if (fd >= 0) close(fd);
    }
    return status;
  }
  Launch launch{
      .arguments = {},
      .stdin_fd = options.stdin_fd >= 0 ? options.stdin_fd : null_fd,
      .stdout_fd = options.stdout_fd >= 0 ? options.stdout_fd : log_fd,
      .stderr_fd = log_fd,
      .group = options.group,
      .parent = getpid(),
      .error_fd = error_pipe[1]};
  for (const std::string& argument : options.command) {
    launch.arguments.push_back(
        const_cast<char*>(argument.c_str()));  // execv's old interface
  }
  launch.arguments.push_back(nullptr);

  const pid_t pid = fork();
  if (pid == 0) RunChild(launch);
  const int fork_error = errno;
  for (const int fd : {null_fd, log_fd, error_pipe[1]}) close(fd);
  const int launch_error =
      pid < 0 ? fork_error : ReadLaunchError(error_pipe[0]);
  close(error_pipe[0]);
  if (launch_error != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(
        launch_error, absl::StrCat("cannot start ", options.command[0]));
  }
  return ChildProcess(pid, OpenPidFd(pid));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      ended_(std::move(other.ended_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pid_fd_, other.pid_fd_);
  std::swap(ended_, other.ended_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && ended_.empty()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pid_fd_ >= 0) close(pid_fd_);
}

void ChildProcess::Signal(int signal) const {
  // Once reaped, the number may be somebody else's.
  if (pid_ > 0 && ended_.empty()) kill(pid_, signal);
}

absl::StatusOr<std::string> ChildProcess::Wait(absl::Time deadline) {
  while (ended_.empty()) {
    int status = 0;
    const pid_t reaped = waitpid(pid_, &status, WNOHANG);
    if (reaped == pid_) {
      ended_ = HowItEnded(status);
      break;
    }
    if (reaped < 0 && errno != EINTR)
      return absl::ErrnoToStatus(errno, "waitpid");
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", pid_, " still runs"));
    }
    pollfd ended = {.fd = pid_fd_, .events = POLLIN, .revents = 0};
    poll(&ended, 1,
         static_cast<int>(absl::ToInt64Milliseconds(
             std::min(left, absl::Seconds(1)) + absl::Milliseconds(1))));
  }
  return ended_;
}

bool ChildProcess::running() { return !Wait(absl::InfinitePast()).ok(); }

}  // namespace gmb::cli
