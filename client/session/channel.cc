// How calls get to the broker: the connection that every call of a session or
// of an operator shares.
#include "client/session/channel.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "ipc/socket_path.h"

namespace gmb::internal {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A channel of our own, so that nothing done to another touches it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Messages are small: no need to ping for every one that is read.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return arguments;
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const SocketDir& dir) {
  grpc::ChannelArguments arguments = Arguments();
  // A full backlog refuses a connection at once: soon again. One that waits in
  // it keeps its place: GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, how long a
  // connection may take, stays at gRPC's 20 s.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(
      dir.grpc_target(), grpc::InsecureChannelCredentials(), arguments);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectChannel(
    const SocketDir& dir) {
  base::UniqueFd fd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "gmb: socket");
  const std::string path = dir.grpc_path();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > ipc::kMaxSocketPathBytes)
    return absl::UnavailableError(absl::StrCat("gmb: too long: ", path));
  path.copy(address.sun_path, path.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("nobody listens at ", dir.name(),
                     "/gmb.sock: ", std::generic_category().message(errno)));
  }
  return grpc::CreateCustomInsecureChannelFromFd("gmb", fd.release(),
                                                 Arguments());
}

}  // namespace gmb::internal
