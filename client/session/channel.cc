// How calls get to the broker: the connection that every call of a session or
// of an operator shares.
#include "client/session/channel.h"

#include <algorithm>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace gmb::internal {

std::shared_ptr<grpc::Channel> MakeChannel(const SocketDir& dir,
                                           std::chrono::milliseconds again) {
  grpc::ChannelArguments arguments;
  // A channel of our own, so that nothing done to another touches it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Messages are small: no need to ping for every one that is read.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A full backlog refuses a connection at once: soon again. One that waits in
  // it keeps its place: GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, how long a
  // connection may take, stays at gRPC's 20 s.
  const int backoff = static_cast<int>(again.count());
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, backoff);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, std::max(backoff, 1000));
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel(
      dir.grpc_target(), grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace gmb::internal
