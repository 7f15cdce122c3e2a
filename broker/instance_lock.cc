// The broker's start: one broker a directory.
#include "broker/instance_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/regular_file.h"
#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// Milliseconds.
constexpr int kNoticeTakes = 500;
constexpr int kDyingTakes = 10'000;

std::string ReadSome(int fd) {
  std::array<char, 1024> buffer{};
  const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), 0);
  return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n))
               : std::string();
}

// "" for a process that is not in our /proc.
std::string CommandLine(const std::string& pid) {
  if (pid.empty() || !std::all_of(pid.begin(), pid.end(), absl::ascii_isdigit))
    return "";
  const base::UniqueFd fd(::open(
      absl::StrCat("/proc/", pid, "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  const std::string raw = ReadSome(fd.get());
  const std::vector<std::string> words =
      absl::StrSplit(raw, '\0', absl::SkipEmpty());
  return absl::CHexEscape(absl::StrJoin(words, " "));
}

// A process that was killed has no memory any more, and so no command line; its
// lock goes a while later, with its files.
bool WaitWhileItDies(int fd) {
  const std::string pid =
      std::vector<std::string>(absl::StrSplit(ReadSome(fd), '\n'))[0];
  pid_t number = 0;
  if (!absl::SimpleAtoi(pid, &number) || number <= 0) return false;
  const base::UniqueFd process(
      static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  // It has died since.
  if (!process.valid()) return errno == ESRCH;
  pollfd died{.fd = process.get(), .events = POLLIN, .revents = 0};
  // It may have been killed just now.
  if (::poll(&died, 1, kNoticeTakes) == 1) return true;
  return CommandLine(pid).empty() && ::poll(&died, 1, kDyingTakes) == 1;
}

// The file's lines are pid and start time. The holder may be between locking
// and writing, have found no room for them, or be in another pid namespace: say
// what is known.
std::string Holder(int fd) {
  const std::vector<std::string> lines = absl::StrSplit(ReadSome(fd), '\n');
  if (lines.size() < 2) {
    return "a broker that is just starting, or whose disk had no room for its "
           "pid";
  }
  const std::string pid = absl::CHexEscape(lines[0]);
  const std::string command = CommandLine(lines[0]);
  return absl::StrCat("pid ", pid,
                      command.empty() ? "" : absl::StrCat(" (", command, ")"),
                      ", since ", absl::CHexEscape(lines[1]));
}

std::string PathIn(const std::string& directory) {
  return absl::StrCat(directory, "/gmbd.lock");
}

void Warn(const std::string& path, absl::string_view what, int error) {
  LogEvent(
      LogLevel::kWarning, "lock_file",
      {{"message",
        absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what)).message()}});
}

// Over the last holder's lines: on a full disk a file that is cut first could
// lose its room to others. The lock holds without them.
void WriteHolder(int fd, const std::string& path) {
  const std::string text = absl::StrCat(
      ::getpid(), "\n",
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()),
      "\n");
  const auto bytes = static_cast<ssize_t>(text.size());
  errno = ENOSPC;  // what a short write means
  const bool written = ::pwrite(fd, text.data(), text.size(), 0) == bytes;
  const int error = errno;
  // The last holder's name would be wrong.
  if (::ftruncate(fd, written ? bytes : 0) != 0 && written)
    return Warn(path, "cannot cut off old lines", errno);
  if (!written) {
    Warn(path,
         "cannot write this broker's pid, so that a second broker cannot name "
         "this one: make room on the disk",
         error);
  }
}

absl::StatusOr<base::UniqueFd> OpenIn(const std::string& directory, int flags) {
  const std::string path = PathIn(directory);
  base::UniqueFd fd(
      ::open(path.c_str(),
             flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (!fd.valid()) {
    const int error = errno;
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot open the lock file ", path,
                            error == EACCES
                                ? ", which its broker's user and root alone can"
                                : ""));
  }
  GMB_RETURN_IF_ERROR(
      base::LookAtRegularFile(fd.get(), "the lock file", path).status());
  return fd;
}

// A stranger that can open the file can hold its lock, and no broker would
// start. An older release made it readable for all.
void CloseToOthers(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && (info.st_mode & 077) == 0) return;
  if (::fchmod(fd, 0600) == 0) return;
  Warn(path,
       "cannot close it to other users, who can keep the next broker from "
       "starting: give it to the broker's user, mode 0600",
       errno);
}

// By this operation of flock.
absl::Status Lock(int fd, int operation, const std::string& directory) {
  if (::flock(fd, operation | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot lock ", PathIn(directory)));
  }
  return absl::AlreadyExistsError(
      absl::StrCat("another broker uses this directory: stop it, or give "
                   "this one a directory of its own: ",
                   directory, " is held by ", Holder(fd)));
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::Acquire(
    const std::string& directory) {
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, OpenIn(directory, O_RDWR | O_CREAT));
  CloseToOthers(fd.get(), PathIn(directory));
  absl::Status locked = Lock(fd.get(), LOCK_EX, directory);
  if (absl::IsAlreadyExists(locked) && WaitWhileItDies(fd.get()))
    locked = Lock(fd.get(), LOCK_EX, directory);
  GMB_RETURN_IF_ERROR(locked);
  WriteHolder(fd.get(), PathIn(directory));
  return InstanceLock(std::move(fd));
}

absl::Status InstanceLock::Probe(const std::string& directory) {
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd fd, OpenIn(directory, O_RDONLY));
  return Lock(fd.get(), LOCK_SH, directory);
}

}  // namespace gmb::broker
