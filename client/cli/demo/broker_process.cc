// The demo: starts a gmbd of its own and asks it as an operator.
#include "client/cli/demo/broker_process.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/installed.h"

namespace gmb::cli {
namespace {

// On a GPU the pool's first slabs are created meanwhile.
constexpr absl::Duration kStartPatience = absl::Seconds(30);
constexpr int kRetryMilliseconds = 20;

std::string LogTail(const std::string& path) {
  constexpr size_t kLines = 5;
  std::ifstream file(path);
  std::deque<std::string> tail;
  for (std::string line; std::getline(file, line);) {
    tail.push_back(line);
    if (tail.size() > kLines) tail.pop_front();
  }
  return tail.empty()
             ? "its log is empty"
             : absl::StrCat("its log ends: ", absl::StrJoin(tail, " | "));
}

bool Executable(const std::filesystem::path& path) {
  return access(path.c_str(), X_OK) == 0;
}

// Greets until somebody answers: a socket that appears sends no message.
absl::StatusOr<AdminClient> ConnectWhenReady(const std::string& socket_dir,
                                             ChildProcess* process,
                                             int interrupt_fd) {
  const absl::Time deadline = absl::Now() + kStartPatience;
  while (true) {
    absl::StatusOr<AdminClient> admin = AdminClient::Connect(socket_dir);
    if (admin.ok() || absl::Now() > deadline) return admin;
    if (const absl::StatusOr<std::string> ended =
            process->Wait(absl::InfinitePast());
        ended.ok()) {
      return absl::UnavailableError(
          absl::StrCat("gmbd ended at its start, ", *ended));
    }
    pollfd interrupt = {.fd = interrupt_fd, .events = POLLIN, .revents = 0};
    if (poll(&interrupt, 1, kRetryMilliseconds) > 0)
      return absl::CancelledError("interrupted");
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerProcess>> BrokerProcess::Start(
    const Options& options) {
  const std::string socket_dir = options.dir + "/sockets";
  const std::string config_path = options.dir + "/gmb.yaml";
  const std::string log_path = options.dir + "/gmbd.log";
  std::error_code error;
  std::filesystem::create_directory(options.dir + "/state",
                                    error);  // gmbd says what fails
  if (!(std::ofstream(config_path) << options.config << std::flush)) {
    return absl::UnavailableError(absl::StrCat("cannot write ", config_path));
  }
  ChildProcess::Options child;
  child.command = {options.program, "--socket-dir",         socket_dir,
                   "--state-dir",   options.dir + "/state", "--config",
                   config_path};
  child.command.insert(child.command.end(), options.device_flags.begin(),
                       options.device_flags.end());
  child.log_path = log_path;
  GMB_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(child));
  std::unique_ptr<BrokerProcess> broker(
      new BrokerProcess(std::move(process), socket_dir));
  absl::StatusOr<AdminClient> admin =
      ConnectWhenReady(socket_dir, &broker->process_, options.interrupt_fd);
  if (!admin.ok()) {
    if (absl::IsCancelled(admin.status())) return admin.status();
    return absl::Status(
        admin.status().code(),
        absl::StrCat(admin.status().message(), "; ", LogTail(log_path)));
  }
  broker->admin_ = std::make_unique<AdminClient>(*std::move(admin));
  return broker;
}

absl::StatusOr<std::string> BrokerProcess::Stop(absl::Duration patience) {
  admin_.reset();  // an operator's session must not keep it from ending
  process_.Signal(SIGTERM);
  return process_.Wait(absl::Now() + patience);
}

absl::StatusOr<std::string> FindBroker() {
  const std::string installed = FindInstalled("gmbd", {".", BinFromLibexec()});
  if (!installed.empty() && Executable(installed)) return installed;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view dir :
       absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::filesystem::path candidate =
        std::filesystem::path(std::string(dir)) / "gmbd";
    if (Executable(candidate)) return candidate.string();
  }
  return absl::NotFoundError(absl::StrCat(
      "no gmbd to show: build or install it with gmb, or add it to "
      "PATH; looked from ",
      ThisProgram()));
}

}  // namespace gmb::cli
