// Whether operators who connect now are answered. The same way in as theirs:
// the listening socket, the thread that accepts, and gRPC's own threads.
#include "broker/server/health_question.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "ipc/socket_path.h"

namespace gmb::broker {
namespace {

constexpr char kMethod[] = "/grpc.health.v1.Health/Check";

absl::StatusOr<base::UniqueFd> Connect(const std::string& socket) {
  GMB_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::SocketAddress(socket));
  base::UniqueFd fd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Room for this end, and for what the other end takes to answer.
  std::array<base::UniqueFd, 3> room;
  bool enough = fd.valid();
  for (base::UniqueFd& one : room) {
    if (enough) one.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    enough = enough && one.valid();
  }
  if (!enough) {
    const auto code = errno == EMFILE || errno == ENFILE || errno == ENOMEM
                          ? absl::StatusCode::kResourceExhausted
                          : absl::StatusCode::kInternal;
    return absl::Status(code, "no socket can be made to ask the broker itself");
  }
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("connect to ", socket));
  }
  return fd;
}

}  // namespace

absl::Status AskHealth(const std::string& socket, absl::Duration patience) {
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, Connect(socket));
  grpc::GenericStub stub(
      grpc::CreateInsecureChannelFromFd("gmb", fd.release()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;  // a HealthCheckRequest for the whole server
  const std::unique_ptr<grpc::GenericClientAsyncResponseReader> call =
      stub.PrepareUnaryCall(&context, kMethod, grpc::ByteBuffer(&nothing, 1),
                            &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  (void)queue.Next(&tag, &ok);
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "operators are not answered at ", socket, ": ", status.error_message()));
}

}  // namespace gmb::broker
