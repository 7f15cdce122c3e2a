// gmb-keeper: keeps fds for a broker that may die.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/commit.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "ipc/open_files.h"
#include "ipc/service_manager.h"
#include "keeper/background.h"
#include "keeper/options.h"
#include "keeper/server.h"
#include "keeper/start.h"

namespace gmb::keeper {
namespace {

enum ExitCode { kStopped = 0, kFailed = 1, kUsage = 2 };

// Connections, what one packet may bring before it is refused, connections that
// are being closed, and the process's own.
constexpr uint64_t kOwnFds = 400;
// Bounds the memory that entries take: some 50 MB.
constexpr uint64_t kMostEntries = 65'536;

// SIGTERM and SIGINT as something to poll. Before the first thread starts, so
// that all of them inherit the mask.
absl::StatusOr<base::UniqueFd> StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // a lost terminal is no reason to stop
  base::UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

absl::Status Serve(const Options& options, Background background) {
  // So that no process of this user takes what is kept by pidfd_getfd, and
  // nothing of it is in a core dump.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0)
    return absl::ErrnoToStatus(errno, "prctl PR_SET_DUMPABLE");
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd stop, StopSignals());
  GMB_ASSIGN_OR_RETURN(const uint64_t files, ipc::RaiseFdLimit());
  const uint64_t fds = files - std::min(files, kOwnFds);
  if (fds == 0) {
    return absl::FailedPreconditionError(
        "the limit on open files is too low: raise it well above 400 (systemd: "
        "LimitNOFILE=, shell: ulimit -Hn)");
  }
  const auto manager = ipc::ServiceManager::FromEnvironment();
  const ServerOptions server_options{
      .limits = {.entries = kMostEntries, .fds = fds},
      .life = options.life,
      .once = options.once,
      .manager = manager};
  GMB_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      options.replace
          ? StartInPlace(options.socket, server_options, stop.get())
          : StartServer(options.socket, server_options, stop.get()));
  std::fprintf(stderr, "gmb-keeper: listens: %s\n", options.socket.c_str());
  background.Tell();
  // No watchdog: with the keeper that it ended all would be lost.
  if (const absl::Status told = manager.Say("READY=1"); !told.ok()) {
    std::fprintf(stderr, "gmb-keeper: %s\n",
                 std::string(told.message()).c_str());
  }
  GMB_RETURN_IF_ERROR(server->Run());
  if (server->replaced_by().has_value()) ::_exit(kStopped);
  std::fprintf(stderr, "gmb-keeper: stopped\n");
  return absl::OkStatus();
}

int Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0)
    return kStopped;
  std::fputs("gmb-keeper: cannot write the output\n", stderr);
  return kFailed;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Options> options =
      ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    std::fprintf(stderr, "gmb-keeper: %s\nTry gmb-keeper --help\n",
                 std::string(options.status().message()).c_str());
    return kUsage;
  }
  if (options->what == Options::Do::kHelp) return Print(HelpText());
  if (options->what == Options::Do::kVersion) {
    const std::string commit = base::Commit();
    return Print(absl::StrCat(
        "gmb-keeper " GMB_KEEPER_VERSION,
        commit.empty() ? "" : absl::StrCat(" (", commit, ")"), "\n"));
  }
  absl::Status served;
  Background background;
  if (options->background) {
    const absl::StatusOr<std::optional<int>> started =
        Background::Enter(&background);
    if (started.ok() && started->has_value()) return **started;
    served.Update(started.status());
  }
  if (served.ok()) served = Serve(*options, std::move(background));
  if (served.ok()) return kStopped;
  std::fprintf(stderr, "gmb-keeper: %s\n",
               std::string(served.message()).c_str());
  return kFailed;
}

}  // namespace
}  // namespace gmb::keeper

int main(int argc, char** argv) { return gmb::keeper::Main(argc, argv); }
