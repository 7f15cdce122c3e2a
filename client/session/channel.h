#ifndef GMB_CLIENT_SESSION_CHANNEL_H_
#define GMB_CLIENT_SESSION_CHANNEL_H_

#include <chrono>
#include <memory>

#include "client/session/socket_dir.h"
#include "grpcpp/channel.h"

namespace gmb::internal {

// A channel to the gRPC socket in `dir`, which shares no connection with
// others. It connects again for as long as it lives: `again` after the first try
// failed, and less often later, at most a second or `again` after the last one.
// Keep `dir` as long.
[[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(
    const SocketDir& dir, std::chrono::milliseconds again);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_CHANNEL_H_
