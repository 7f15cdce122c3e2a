// The demo: starts a tenant's process and talks to it.
#include "client/cli/demo/actor_process.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace gmb::cli {

absl::StatusOr<ActorProcess> ActorProcess::Start(const Options& options) {
  GMB_ASSIGN_OR_RETURN(ChannelPair pair, LineChannel::Pair());
  GMB_ASSIGN_OR_RETURN(
      ChildProcess process,
      ChildProcess::Start({.command = {options.program, "--actor",
                                       "--socket-dir", options.socket_dir},
                           .stdin_fd = pair.theirs.fd(),
                           .stdout_fd = pair.theirs.fd(),
                           .log_path = options.log_path,
                           .group = options.group}));
  ActorProcess actor(options, std::move(process), std::move(pair.ours));
  GMB_RETURN_IF_ERROR(actor.Await({"connected"}).status());
  return actor;
}

absl::Status ActorProcess::Send(const Json& command) {
  return channel_.Send(LineJson(command));
}

absl::Status ActorProcess::AskLease(absl::string_view name, uint64_t bytes,
                                    absl::Duration wait, bool expect_zero) {
  return Send({{"do", "lease"},
               {"name", std::string(name)},
               {"bytes", bytes},
               {"wait", absl::ToDoubleSeconds(wait)},
               {"expect_zero", expect_zero}});
}

absl::Status ActorProcess::AskVerify() { return Send({{"do", "verify"}}); }

absl::Status ActorProcess::AskRelease(absl::string_view name) {
  return Send({{"do", "release"}, {"name", std::string(name)}});
}

absl::Status ActorProcess::AskIdle() { return Send({{"do", "idle"}}); }

absl::Status ActorProcess::AskWake(absl::Duration wait) {
  return Send({{"do", "wake"}, {"wait", absl::ToDoubleSeconds(wait)}});
}

absl::Status ActorProcess::AskQuit() { return Send({{"do", "quit"}}); }

absl::StatusOr<Json> ActorProcess::Await(
    std::initializer_list<absl::string_view> names, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  const auto wanted = [&](const Json& event) {
    const std::string name = event.at("event").get<std::string>();
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto waiting = std::find_if(unread_.begin(), unread_.end(), wanted);
  if (waiting != unread_.end()) {
    Json event = std::move(*waiting);
    unread_.erase(waiting);
    return event;
  }
  while (true) {
    const absl::StatusOr<std::string> line =
        channel_.Receive(deadline, options_.interrupt_fd);
    if (!line.ok()) {
      return absl::Status(line.status().code(),
                          absl::StrCat("process of tenant ", options_.tenant,
                                       ": ", line.status().message()));
    }
    Json event = Json::parse(*line);
    if (event.at("event") == "failed") {
      return absl::Status(
          static_cast<absl::StatusCode>(event.at("code").get<int>()),
          absl::StrCat("process of tenant ", options_.tenant, ": ",
                       event.at("message").get<std::string>()));
    }
    if (wanted(event)) return event;
    unread_.push_back(std::move(event));
  }
}

}  // namespace gmb::cli
