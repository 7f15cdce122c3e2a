// Finds out how a running broker was started, to start another one like it.
#include "client/cli/upgrade/started_as.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace gmb::cli {
namespace {

namespace fs = std::filesystem;
using internal::BrokerProcess;

constexpr absl::Duration kSystemctlTime = absl::Seconds(10);

std::string InProc(const BrokerProcess& broker, absl::string_view name) {
  return absl::StrCat("/proc/", broker.pid, "/", name);
}

// Each ends with a NUL. None: it cannot be read.
std::optional<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string all((std::istreambuf_iterator<char>(file)),
                        std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  std::vector<std::string> texts = absl::StrSplit(all, '\0');
  if (!texts.empty() && texts.back().empty()) texts.pop_back();
  return texts;
}

std::string LinkAt(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

absl::Status CheckMayRestart(const BrokerProcess& broker) {
  if (::geteuid() == 0 || ::geteuid() == broker.uid) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("gmbd's own user may have it replaced, and root: pid ",
                   broker.pid, " runs as uid ", broker.uid));
}

// "Uid:\t0\t0\t0\t0": what follows the name.
std::vector<std::string> FieldOf(const BrokerProcess& broker,
                                 absl::string_view name) {
  std::ifstream status(InProc(broker, "status"));
  for (std::string line; std::getline(status, line);) {
    absl::string_view text = line;
    if (absl::ConsumePrefix(&text, name))
      return absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }
  return {};
}

bool AllAre(const std::vector<std::string>& ids, absl::string_view id) {
  return std::all_of(ids.begin(), ids.end(),
                     [id](const std::string& one) { return one == id; });
}

// Those of the user who listened at the socket, and no others: who has a program
// of more rights run with that socket open gets none of them by us.
absl::StatusOr<Rights> RightsOf(const BrokerProcess& broker) {
  Rights rights;
  const std::vector<std::string> uids = FieldOf(broker, "Uid:");
  const std::vector<std::string> gids = FieldOf(broker, "Gid:");
  bool ok = uids.size() == 4 && gids.size() == 4 &&
            AllAre(uids, absl::StrCat(broker.uid)) && AllAre(gids, gids[0]) &&
            absl::SimpleAtoi(uids[0], &rights.uid) &&
            absl::SimpleAtoi(gids[0], &rights.gid);
  for (const std::string& word : FieldOf(broker, "Groups:")) {
    gid_t group = 0;
    ok = ok && absl::SimpleAtoi(word, &group);
    rights.groups.push_back(group);
  }
  if (ok) return rights;
  return absl::FailedPreconditionError(absl::StrCat(
      "gmbd does not run as one user and one group, uid ", broker.uid,
      ", or that cannot be read: ", InProc(broker, "status")));
}

std::map<int, rlimit> LimitsOf(const BrokerProcess& broker) {
  std::map<int, rlimit> limits;
  for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
    rlimit limit{};
    if (::syscall(SYS_prlimit64, broker.pid, resource, nullptr, &limit) == 0)
      limits[resource] = limit;
  }
  return limits;
}

// Root's to take; its own user keeps its own.
base::UniqueFd OutputOf(const BrokerProcess& broker, int fd) {
  base::UniqueFd same(
      static_cast<int>(::syscall(SYS_pidfd_getfd, broker.pidfd.get(), fd, 0)));
  if (same.valid() || errno != EPERM) return same;
  return base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

// As a shell would find it.
std::string Resolve(const std::string& name) {
  std::error_code error;
  if (absl::StrContains(name, '/')) return fs::absolute(name, error).string();
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    const std::string found = absl::StrCat(folder, "/", name);
    if (::access(found.c_str(), X_OK) == 0) return found;
  }
  return name;
}

bool IsSameFile(int fd, const std::string& path) {
  struct stat a {};
  struct stat b {};
  return ::fstat(fd, &a) == 0 && ::stat(path.c_str(), &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

absl::Status FindExecutable(const BrokerProcess& broker, StartedAs* as) {
  const std::string link = InProc(broker, "exe");
  const std::string path = LinkAt(link);
  Launch& launch = as->launch;
  as->hidden = path.empty();
  launch.program = as->hidden
                       ? Resolve(launch.arguments.front())
                       : std::string(absl::StripSuffix(path, " (deleted)"));
  as->executable =
      base::UniqueFd(::open(as->hidden ? launch.program.c_str() : link.c_str(),
                            O_RDONLY | O_CLOEXEC));
  if (!as->executable.valid()) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open gmbd's program, ", launch.program));
  }
  struct stat info {};
  if (::fstat(as->executable.get(), &info) != 0 ||
      (info.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a program with rights of its own is no gmbd: ", launch.program));
  }
  // Releases behind a link: started by its path, it would be another one now.
  const std::string& asked = launch.arguments.front();
  if (asked.front() == '/' && ::access(asked.c_str(), X_OK) == 0 &&
      !IsSameFile(as->executable.get(), asked)) {
    launch.program = asked;
  }
  as->replaced = !IsSameFile(as->executable.get(), launch.program);
  if (as->replaced) launch.executable = as->executable.get();
  return absl::OkStatus();
}

// A process may name its control group as it likes, a word that systemctl takes
// for an option too.
bool IsUnitName(absl::string_view name) {
  return !name.empty() && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains(":_.@\\-", c);
         });
}

std::vector<std::string> UnitOf(const BrokerProcess& broker) {
  std::ifstream groups(InProc(broker, "cgroup"));
  for (std::string line; std::getline(groups, line);) {
    // "0::/system.slice/gmbd.service", "1:name=systemd:/..."
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::EndsWith(parts[2], ".service")) continue;
    const std::string name = parts[2].substr(parts[2].rfind('/') + 1);
    if (!IsUnitName(name)) continue;
    std::vector<std::string> unit = {"--", name};
    if (absl::StrContains(parts[2], "/user@")) unit = {"--user", "--", name};
    // It may be a child of one, such as a shell's.
    std::vector<std::string> words = {"show", "--property=MainPID", "--value"};
    words.insert(words.end(), unit.begin(), unit.end());
    const absl::StatusOr<std::string> main_pid = Systemctl(words);
    if (main_pid.ok() &&
        absl::StripAsciiWhitespace(*main_pid) == absl::StrCat(broker.pid))
      return unit;
  }
  return {};
}

// The kernel ends a pid namespace with its first process: the one that is to
// start the next broker, too.
absl::Status CheckNotFirst(const BrokerProcess& broker) {
  const std::vector<std::string> pids = FieldOf(broker, "NSpid:");
  if (pids.empty() || pids.back() != "1") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "nothing was changed: gmbd, pid ", broker.pid,
      ", is the first process of its container, and with that one the kernel "
      "ends all others in there, the next gmbd among them. Have whoever runs "
      "the container start one of another image in its place; with on_stop: "
      "detach its stop leaves all to that"));
}

absl::Status CheckNoContainer(const BrokerProcess& broker) {
  for (const char* const kind : {"ns/mnt", "ns/pid", "ns/user"}) {
    const std::string its = LinkAt(InProc(broker, kind));
    if (its.empty() || its == LinkAt(absl::StrCat("/proc/self/", kind)))
      continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "gmbd, pid ", broker.pid,
        ", runs in a container or a sandbox (another ", kind,
        "): run gmb upgrade in there, or have whoever started it start the new "
        "one; with on_stop: detach its stop leaves all to that"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StartedAs> ReadStartedAs(const BrokerProcess& broker) {
  GMB_RETURN_IF_ERROR(CheckMayRestart(broker));
  StartedAs as;
  Launch& launch = as.launch;
  const auto arguments = ReadTexts(InProc(broker, "cmdline"));
  if (!arguments.has_value() || arguments->empty() ||
      arguments->front().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot read how gmbd was started: ", InProc(broker, "cmdline")));
  }
  launch.arguments = *arguments;
  GMB_RETURN_IF_ERROR(FindExecutable(broker, &as));
  const auto environment = ReadTexts(InProc(broker, "environ"));
  as.hidden = as.hidden || !environment.has_value();
  // The one that this process was started with: main() changes its own.
  launch.environment = environment.has_value()
                           ? *environment
                           : ReadTexts("/proc/self/environ")
                                 .value_or(std::vector<std::string>());
  launch.directory = LinkAt(InProc(broker, "cwd"));
  as.unit = UnitOf(broker);
  if (as.unit.empty()) {
    GMB_RETURN_IF_ERROR(CheckNotFirst(broker));
    GMB_RETURN_IF_ERROR(CheckNoContainer(broker));
  }
  for (int fd = 0; fd < 3; ++fd) {
    as.stdio[fd] = OutputOf(broker, fd);
    launch.stdio[fd] = as.stdio[fd].get();
  }
  GMB_ASSIGN_OR_RETURN(Rights rights, RightsOf(broker));
  if (::geteuid() != broker.uid) launch.rights = std::move(rights);
  launch.limits = LimitsOf(broker);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &launch.mask);
  if (AwaitDeath(broker.pidfd.get(), absl::ZeroDuration()))
    return absl::UnavailableError("gmbd has just ended");
  return as;
}

absl::StatusOr<std::string> Systemctl(const std::vector<std::string>& words) {
  Launch ask;
  ask.program = Resolve("systemctl");
  ask.arguments = {"systemctl"};
  ask.arguments.insert(ask.arguments.end(), words.begin(), words.end());
  ask.environment =
      ReadTexts("/proc/self/environ").value_or(std::vector<std::string>());
  ::pthread_sigmask(SIG_SETMASK, nullptr, &ask.mask);
  return RunToEnd(std::move(ask), kSystemctlTime);
}

}  // namespace gmb::cli
