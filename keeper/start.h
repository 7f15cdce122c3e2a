#ifndef GMB_KEEPER_START_H_
#define GMB_KEEPER_START_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "keeper/server.h"

namespace gmb::keeper {

// A keeper at that path, which makes its directory if it is missing. `stop` as
// in Server::Start.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Server>> StartServer(
    const std::string& socket, const ServerOptions& options, int stop);

// In the place of the one that lives there; as usual where none does, and then
// its broker, if one lives, fills this one.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Server>> StartInPlace(
    const std::string& socket, const ServerOptions& options, int stop);

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_START_H_
