// The demo: starts a gmbd of its own and asks it as an operator.
#include "client/cli/demo/broker_process.h"

#include <poll.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/demo/find_program.h"
#include "client/cli/demo/log_tail.h"

namespace gmb::cli {
namespace {

// On a GPU the pool's first slabs are created meanwhile.
constexpr absl::Duration kStartPatience = absl::Seconds(30);
constexpr int kRetryMilliseconds = 20;

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
  const std::string config_path = options.dir + "/gmb.yaml";
  std::error_code error;
  std::filesystem::create_directory(options.dir + "/state",
                                    error);  // gmbd says what fails
  if (!(std::ofstream(config_path) << options.config << std::flush)) {
    return absl::UnavailableError(absl::StrCat("cannot write ", config_path));
  }
  const std::string socket_dir = options.dir + "/sockets";
  ChildProcess::Options child;
  child.command = {options.program, "--socket-dir",         socket_dir,
                   "--state-dir",   options.dir + "/state", "--config",
                   config_path};
  child.command.insert(child.command.end(), options.device_flags.begin(),
                       options.device_flags.end());
  child.log_path = options.dir + "/gmbd.log";
  GMB_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(child));
  std::unique_ptr<BrokerProcess> broker(new BrokerProcess(
      std::move(child), std::move(process), socket_dir, options.interrupt_fd));
  GMB_RETURN_IF_ERROR(broker->AwaitAnswer());
  return broker;
}

absl::Status BrokerProcess::AwaitAnswer() {
  absl::StatusOr<AdminClient> admin =
      ConnectWhenReady(socket_dir_, &process_, interrupt_fd_);
  if (!admin.ok()) {
    if (absl::IsCancelled(admin.status())) return admin.status();
    return absl::Status(admin.status().code(),
                        absl::StrCat(admin.status().message(), "; ",
                                     LogTail(command_.log_path)));
  }
  admin_ = std::make_unique<AdminClient>(*std::move(admin));
  return absl::OkStatus();
}

absl::StatusOr<std::string> BrokerProcess::Kill(absl::Duration patience) {
  admin_.reset();
  process_.Signal(SIGKILL);
  return process_.Wait(absl::Now() + patience);
}

absl::Status BrokerProcess::Launch() {
  GMB_ASSIGN_OR_RETURN(process_, ChildProcess::Start(command_));
  return absl::OkStatus();
}

absl::Status BrokerProcess::StartAgain() {
  GMB_RETURN_IF_ERROR(Launch());
  return AwaitAnswer();
}

absl::StatusOr<std::string> BrokerProcess::Stop(absl::Duration patience) {
  admin_.reset();  // an operator's session must not keep it from ending
  process_.Signal(SIGTERM);
  return process_.Wait(absl::Now() + patience);
}

absl::StatusOr<std::string> FindBroker() { return FindProgram("gmbd"); }

}  // namespace gmb::cli
