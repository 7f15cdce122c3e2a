// A keeper begins, alone or in the place of another one.
#include "keeper/start.h"

#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "keeper/link/keeper_place.h"
#include "keeper/succession.h"

namespace gmb::keeper {
namespace {

// Where the one that lives has all again before this one had: its machine is
// slow, or one of the two was stopped.
constexpr int kTries = 3;

// Once in the place of the one that lives. ABORTED: it goes on. UNAVAILABLE: it
// is dead, or has hung up.
absl::StatusOr<std::unique_ptr<Server>> TakePlace(const std::string& socket,
                                                  const ServerOptions& options,
                                                  int stop) {
  GMB_ASSIGN_OR_RETURN(
      Succession succession,
      Succession::Begin({.socket = socket, .role = Role::kSuccessor}));
  GMB_ASSIGN_OR_RETURN(
      Inheritance all,
      succession.TakeAll(options.limits, options.manager.present()));
  GMB_ASSIGN_OR_RETURN(KeeperPlace place,
                       KeeperPlace::Open(socket, /*make=*/false));
  GMB_ASSIGN_OR_RETURN(
      std::unique_ptr<Server> server,
      Server::Inherit(std::move(place), options, stop, std::move(all)));
  GMB_RETURN_IF_ERROR(succession.Commit());
  // Its broker is served all the same.
  if (const absl::Status claimed = server->Claim(); !claimed.ok()) {
    std::fprintf(stderr, "gmb-keeper: nobody can connect: %s\n",
                 std::string(claimed.message()).c_str());
  }
  return server;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartServer(
    const std::string& socket, const ServerOptions& options, int stop) {
  GMB_ASSIGN_OR_RETURN(KeeperPlace place,
                       KeeperPlace::Open(socket, /*make=*/true));
  return Server::Start(std::move(place), options, stop);
}

absl::StatusOr<std::unique_ptr<Server>> StartInPlace(
    const std::string& socket, const ServerOptions& options, int stop) {
  absl::StatusOr<std::unique_ptr<Server>> server;
  for (int i = 0; i < kTries; ++i) {
    server = TakePlace(socket, options, stop);
    if (absl::IsAborted(server.status())) continue;
    if (!absl::IsUnavailable(server.status())) return server;
    server = StartServer(socket, options, stop);
    if (!absl::IsAlreadyExists(server.status())) return server;
  }
  return absl::Status(
      server.status().code(),
      absl::StrCat(server.status().message(),
                   ": it does not let itself be replaced: is it of an older "
                   "release?"));
}

}  // namespace gmb::keeper
