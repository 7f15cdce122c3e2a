// From the command to the broker's process, without gRPC.
#include "client/cli/upgrade/broker_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gmb::cli {
namespace {

bool Blocks(const std::filesystem::path& status_file, int signal) {
  std::ifstream status(status_file);
  for (std::string line; std::getline(status, line);) {
    absl::string_view text = line;
    uint64_t blocked = 0;
    if (absl::ConsumePrefix(&text, "SigBlk:") &&
        absl::SimpleHexAtoi(absl::StripAsciiWhitespace(text), &blocked))
      return (blocked >> (signal - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

// The thread that waits for the signal shows it as not blocked, and all others
// as blocked.
absl::Status CheckUnderstands(const internal::BrokerProcess& broker,
                              int signal) {
  std::error_code none;
  std::filesystem::directory_iterator thread(
      absl::StrCat("/proc/", broker.pid, "/task"), none);
  const std::filesystem::directory_iterator end;
  for (; !none && thread != end; thread.increment(none)) {
    if (Blocks(thread->path() / "status", signal)) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "pid ", broker.pid,
      " is no gmbd that understands this: it is of an older release, or "
      "its /proc is hidden. SIGTERM stops it as its on_stop says"));
}

absl::Status Tell(const internal::BrokerProcess& broker, int signal) {
  if (::syscall(SYS_pidfd_send_signal, broker.pidfd.get(), signal, nullptr,
                0) == 0)
    return absl::OkStatus();
  if (errno == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("gmbd's own user may have it stop, and root: pid ",
                     broker.pid, " runs as uid ", broker.uid));
  }
  if (errno == ESRCH) {
    return absl::AbortedError(absl::StrCat(
        "gmbd, pid ", broker.pid,
        ", has ended meanwhile, and not by this command: is another gmb "
        "upgrade or gmb drain at work? `gmb status --wait 10s` shows what "
        "serves then; run this again if it is still to be done"));
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot signal gmbd, pid ", broker.pid));
}

}  // namespace gmb::cli
