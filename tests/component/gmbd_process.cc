#include "tests/component/gmbd_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/end_with_parent.h"

namespace gmb {
std::string ProgramPath(const std::string& name) {
  return std::string(GMB_PROGRAM_DIR) + "/" + name;
}

namespace {

constexpr int kPatienceMs = 20'000;

// Both outputs of the child go into the pipe.
pid_t Spawn(const std::string& program,
            const std::vector<std::string>& arguments, unsigned fd_limit,
            base::UniqueFd* output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  std::vector<std::string> words = {ProgramPath(program)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    EndWithParent(parent);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    const rlimit limit{.rlim_cur = fd_limit, .rlim_max = fd_limit};
    if (fd_limit != 0) ::setrlimit(RLIMIT_NOFILE, &limit);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output->reset(ends[0]);
  return pid;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

GmbdProcess::GmbdProcess(const std::vector<std::string>& arguments,
                         unsigned fd_limit)
    : pid_(Spawn("gmbd", arguments, fd_limit, &stderr_)) {}

GmbdProcess::~GmbdProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool GmbdProcess::ReadMore() {
  pollfd readable{.fd = stderr_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, kPatienceMs) != 1) return false;
  std::array<char, 4096> buffer{};
  const ssize_t n = ::read(stderr_.get(), buffer.data(), buffer.size());
  if (n <= 0) return false;
  log_.append(buffer.data(), static_cast<size_t>(n));
  return true;
}

bool GmbdProcess::WaitForLog(const std::string& text) {
  while (log_.find(text) == std::string::npos) {
    if (!ReadMore()) return false;
  }
  return true;
}

void GmbdProcess::Signal(int number) const { ::kill(pid_, number); }

int GmbdProcess::WaitForExit() {
  while (ReadMore()) {
  }
  // The pipe closes with the process; only one that hangs keeps it open.
  pollfd closed{.fd = stderr_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&closed, 1, 0) != 1) return -1;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return ExitCode(status);
}

CommandResult RunGmb(const std::vector<std::string>& arguments) {
  CommandResult result{-1, ""};
  base::UniqueFd output;
  const pid_t pid = Spawn("gmb", arguments, 0, &output);
  std::array<char, 4096> buffer{};
  ssize_t n = 0;
  while ((n = ::read(output.get(), buffer.data(), buffer.size())) > 0) {
    result.output.append(buffer.data(), static_cast<size_t>(n));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = ExitCode(status);
  return result;
}

}  // namespace gmb
