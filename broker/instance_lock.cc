// The broker's start: one broker a directory.
#include "broker/instance_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
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
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/regular_file.h"
#include "base/status_macros.h"

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
bool WaitWhileItDies(const std::string& directory) {
  const base::UniqueFd file(
      ::open(absl::StrCat(directory, "/gmbd.lock").c_str(),
             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return false;
  const std::string pid =
      std::vector<std::string>(absl::StrSplit(ReadSome(file.get()), '\n'))[0];
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
// and writing, or in another pid namespace: say what is known.
std::string Holder(int fd) {
  const std::vector<std::string> lines = absl::StrSplit(ReadSome(fd), '\n');
  if (lines.size() < 2) return "a broker that is just starting";
  const std::string pid = absl::CHexEscape(lines[0]);
  const std::string command = CommandLine(lines[0]);
  return absl::StrCat("pid ", pid,
                      command.empty() ? "" : absl::StrCat(" (", command, ")"),
                      ", since ", absl::CHexEscape(lines[1]));
}

absl::Status WriteHolder(int fd) {
  const std::string text = absl::StrCat(
      ::getpid(), "\n",
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()),
      "\n");
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) !=
                                     static_cast<ssize_t>(text.size())) {
    return absl::ErrnoToStatus(errno, "cannot write the lock file");
  }
  return absl::OkStatus();
}

// Opened with these flags, and locked by this operation of flock.
absl::StatusOr<base::UniqueFd> Lock(const std::string& directory, int flags,
                                    int operation) {
  const std::string path = absl::StrCat(directory, "/gmbd.lock");
  base::UniqueFd fd(
      ::open(path.c_str(),
             flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644));
  if (!fd.valid()) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the lock file ", path));
  }
  GMB_RETURN_IF_ERROR(
      base::LookAtRegularFile(fd.get(), "the lock file", path).status());
  if (::flock(fd.get(), operation | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
  return absl::AlreadyExistsError(
      absl::StrCat("another broker uses this directory: stop it, or give "
                   "this one a directory of its own: ",
                   directory, " is held by ", Holder(fd.get())));
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::Acquire(
    const std::string& directory) {
  absl::StatusOr<base::UniqueFd> fd =
      Lock(directory, O_RDWR | O_CREAT, LOCK_EX);
  if (absl::IsAlreadyExists(fd.status()) && WaitWhileItDies(directory))
    fd = Lock(directory, O_RDWR | O_CREAT, LOCK_EX);
  if (!fd.ok()) return fd.status();
  if (absl::Status written = WriteHolder(fd->get()); !written.ok()) {
    return absl::Status(written.code(), absl::StrCat(written.message(), ": ",
                                                     directory, "/gmbd.lock"));
  }
  return InstanceLock(*std::move(fd));
}

absl::Status InstanceLock::Probe(const std::string& directory) {
  return Lock(directory, O_RDONLY, LOCK_SH).status();
}

}  // namespace gmb::broker
