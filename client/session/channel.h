#ifndef GMB_CLIENT_SESSION_CHANNEL_H_
#define GMB_CLIENT_SESSION_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/session/socket_dir.h"
#include "grpcpp/channel.h"

namespace gmb::internal {

// A channel to the gRPC socket in `dir`, which shares no connection with
// others. It connects again for as long as it lives, at most a second after
// the last try failed. Keep `dir` as long.
[[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(const SocketDir& dir);

// A channel of one connection, which is there already: it ends with that. To
// try this costs microseconds where nobody listens, and a channel of the other
// kind a thousand times that. UNAVAILABLE: nobody listens, or too many wait.
[[nodiscard]] absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectChannel(
    const SocketDir& dir);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_CHANNEL_H_
