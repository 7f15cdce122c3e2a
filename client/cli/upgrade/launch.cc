// A program that outlives the command: started as another one was.
#include "client/cli/upgrade/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace gmb::cli {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// All that the child needs, made before there is one: it may not allocate.
struct Prepared {
  const Launch* launch;
  std::string path;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int null;
  int told;  // where the child writes errno, should it fail
};

bool TakeStdio(const Prepared& prepared) {
  std::array<int, 3> high{};
  for (int i = 0; i < 3; ++i) {
    const int fd = prepared.launch->stdio[i];
    // Out of the way of those that are replaced.
    high[i] = ::fcntl(fd < 0 ? prepared.null : fd, F_DUPFD_CLOEXEC, 3);
    if (high[i] < 0) return false;
  }
  for (int i = 0; i < 3; ++i) {
    if (::dup2(high[i], i) < 0) return false;
  }
  return true;
}

// The system calls, not glibc's, which would tell all threads of a process that
// has but one.
bool TakeRights(const Rights& rights) {
  return ::syscall(SYS_setgroups, rights.groups.size(), rights.groups.data()) ==
             0 &&
         ::syscall(SYS_setresgid, rights.gid, rights.gid, rights.gid) == 0 &&
         ::syscall(SYS_setresuid, rights.uid, rights.uid, rights.uid) == 0;
}

// The exec closes the files that this process was started with, such as the lock
// of flock(1); not so on Linux before 5.11.
void KeepStdioAlone() {
  (void)::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

// In the child, which shares memory with nobody, but may have been forked while
// another thread held a lock: system calls alone.
[[noreturn]] void Become(const Prepared& prepared) {
  const Launch& launch = *prepared.launch;
  ::setsid();
  for (const auto& [resource, limit] : launch.limits) {
    (void)::syscall(SYS_prlimit64, 0, resource, &limit, nullptr);
  }
  const bool ready =
      TakeStdio(prepared) &&
      (!launch.rights.has_value() || TakeRights(*launch.rights)) &&
      (launch.directory.empty() || ::chdir(launch.directory.c_str()) == 0);
  if (ready) {
    KeepStdioAlone();
    ::pthread_sigmask(SIG_SETMASK, &launch.mask, nullptr);
    ::execve(prepared.path.c_str(), prepared.arguments.data(),
             prepared.environment.data());
  }
  const int why = errno;
  (void)!::write(prepared.told, &why, sizeof(why));
  ::_exit(127);
}

std::string EndOf(int status) {
  return WIFEXITED(status) ? absl::StrCat("exit code ", WEXITSTATUS(status))
                           : absl::StrCat("signal ", WTERMSIG(status));
}

std::string AllOf(int fd) {
  std::string text(
      static_cast<size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  const ssize_t read = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read)));
  return text;
}

}  // namespace

absl::StatusOr<Launched> Launched::Start(const Launch& launch) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> pipe{-1, -1};
  if (!null.valid() || ::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "cannot start a program");
  const base::UniqueFd hears(pipe[0]);
  base::UniqueFd tells(pipe[1]);
  const Prepared prepared{
      .launch = &launch,
      .path = launch.executable < 0
                  ? launch.program
                  : absl::StrCat("/proc/self/fd/", launch.executable),
      .arguments = Pointers(launch.arguments),
      .environment = Pointers(launch.environment),
      .null = null.get(),
      .told = tells.get()};
  const pid_t pid = ::fork();
  if (pid == 0) Become(prepared);
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a program");
  tells.reset();
  Launched launched(
      pid, base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
  int why = 0;
  ssize_t heard = -1;
  do {
    heard = ::read(hears.get(), &why, sizeof(why));
  } while (heard < 0 && errno == EINTR);
  if (heard <= 0) return launched;
  launched.Kill();
  return absl::ErrnoToStatus(why, absl::StrCat("cannot run ", launch.program));
}

std::optional<std::string> Launched::AwaitEnd(absl::Duration wait) {
  if (!ended_.empty()) return ended_;
  if (!AwaitDeath(pidfd_.get(), wait)) return std::nullopt;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  ended_ = EndOf(status);
  return ended_;
}

void Launched::Kill() {
  if (ended_.empty()) ::kill(pid_, SIGKILL);
  (void)AwaitEnd(absl::InfiniteDuration());
}

absl::StatusOr<std::string> RunToEnd(Launch launch, absl::Duration wait) {
  const base::UniqueFd said(::memfd_create("said", MFD_CLOEXEC));
  if (!said.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  launch.stdio = {-1, said.get(), said.get()};
  GMB_ASSIGN_OR_RETURN(Launched launched, Launched::Start(launch));
  const std::optional<std::string> ended = launched.AwaitEnd(wait);
  if (!ended.has_value()) launched.Kill();
  const std::string text = AllOf(said.get());
  if (ended == "exit code 0") return text;
  const absl::string_view words = absl::StripSuffix(text, "\n");
  if (ended.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it ended with ", *ended, ": ", words));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "it did not end within ", absl::FormatDuration(wait), ": ", words));
}

bool AwaitDeath(int pidfd, absl::Duration wait) {
  const absl::Time end = absl::Now() + wait;
  for (;;) {
    pollfd dead{pidfd, POLLIN, 0};
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    const int ready = ::poll(
        &dead, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (absl::Now() >= end) return false;
  }
}

}  // namespace gmb::cli
