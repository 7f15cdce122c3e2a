// A session begins: connects, and proves who this process is.
#include "client/session/greeting.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "client/wire.h"
#include "gmb/error.h"
#include "ipc/pidfd.h"
#include "proto/error_status.h"
#include "proto/utf8_check.h"

namespace gmb::internal {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr size_t kNonceBytes = 16;
constexpr size_t kTokenBytes = 16;
constexpr size_t kMostProgramCharacters = 64;
constexpr uint32_t kGateLayout = 1;  // ipc::GateCells
constexpr absl::Duration kLook = absl::Milliseconds(20);
// A process that hangs up because it was killed is dead after so long.
constexpr absl::Duration kDeath = absl::Milliseconds(500);

std::string ProgramName(const std::string& asked) {
  std::string name;
  for (const char c :
       asked.empty() ? std::string(program_invocation_short_name) : asked) {
    if (name.size() == kMostProgramCharacters) break;
    name.push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c
                                                                      : '?');
  }
  return name;
}

// `fds` gets what came with the frame.
absl::StatusOr<v1::BrokerFrame> ReceiveFrame(ipc::SeqpacketSocket& socket,
                                             const base::Deadline& deadline,
                                             std::vector<base::UniqueFd>* fds) {
  GMB_ASSIGN_OR_RETURN(ipc::Packet packet, socket.Receive(deadline.Left()));
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet.bytes))
    return ProtocolError("garbage in the greeting");
  if (frame.has_refused()) return proto::FromWireError(frame.refused());
  *fds = std::move(packet.fds);
  return frame;
}

absl::Status CheckChallenge(const v1::BrokerFrame& frame) {
  if (!frame.has_challenge())
    return ProtocolError("no challenge at the greeting");
  const v1::Challenge& challenge = frame.challenge();
  if (challenge.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "gmb: the broker speaks another version of the protocol; update the "
        "older of the two: "
        "broker=",
        challenge.protocol_version(), " library=", kProtocolVersion));
  }
  if (challenge.nonce().size() != kNonceBytes)
    return ProtocolError("a nonce of the wrong size");
  return absl::OkStatus();
}

absl::Status CheckWelcome(const v1::BrokerFrame& frame) {
  if (!frame.has_welcome()) return ProtocolError("no welcome at the greeting");
  if (frame.welcome().session_id() == 0 ||
      frame.welcome().token().size() != kTokenBytes) {
    return ProtocolError("a welcome without session id or token");
  }
  return absl::OkStatus();
}

// None of a layout that is not known: the program then has no gate to turn on.
absl::StatusOr<std::optional<ipc::GatePage>> MapGate(
    const v1::Welcome& welcome, const std::vector<base::UniqueFd>& fds) {
  if (welcome.gate_layout() != kGateLayout) return std::nullopt;
  if (fds.size() != 1) {
    return ProtocolError(
        absl::StrCat("a welcome with a gate and ", fds.size(), " fds"));
  }
  absl::StatusOr<ipc::GatePage> page = ipc::GatePage::Map(fds[0].get());
  if (absl::IsInvalidArgument(page.status())) {
    return ProtocolError(page.status().message());
  }
  if (!page.ok()) return page.status();
  return std::optional<ipc::GatePage>(*std::move(page));
}

bool LiesThere(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

// None where the system cannot tell; an error where it has died.
absl::StatusOr<base::UniqueFd> BrokerBehind(
    const ipc::SeqpacketSocket& socket) {
  const absl::StatusOr<ipc::PeerCredentials> peer = socket.peer();
  if (!peer.ok()) return base::UniqueFd();
  absl::StatusOr<base::UniqueFd> pidfd =
      ipc::OpenPeerPidfd(socket.fd(), peer->pid);
  if (pidfd.ok() || absl::IsUnavailable(pidfd.status())) return pidfd;
  return base::UniqueFd();
}

// A broker that stops removes its sockets. One that was killed leaves them, and
// the next one may be on its way (docs/restart.md): a program that starts just
// then is to meet that, rather than an error.
absl::StatusOr<ipc::SeqpacketSocket> ConnectToThisBrokerOrTheNext(
    const std::string& path, const base::Deadline& deadline,
    const base::Deadline& gives_up) {
  bool was_left = false;
  for (;;) {
    absl::StatusOr<ipc::SeqpacketSocket> socket =
        ipc::SeqpacketSocket::Connect(path, deadline.Left());
    if (!absl::IsUnavailable(socket.status())) return socket;
    was_left = was_left || LiesThere(path);
    if (!was_left || gives_up.Left() <= kLook) return socket;
    absl::SleepFor(kLook);
  }
}

absl::StatusOr<Greeting> GreetOn(ipc::SeqpacketSocket socket,
                                 const std::string& program,
                                 const std::string& tenant_token,
                                 const base::Deadline& deadline) {
  std::vector<base::UniqueFd> fds;
  absl::StatusOr<v1::BrokerFrame> frame = ReceiveFrame(socket, deadline, &fds);
  if (!frame.ok()) return frame.status();
  GMB_RETURN_IF_ERROR(CheckChallenge(*frame));
  const bool takes_streams = frame->challenge().takes_streams();

  v1::ClientFrame hello;
  hello.mutable_hello()->set_protocol_version(kProtocolVersion);
  hello.mutable_hello()->set_nonce(frame->challenge().nonce());
  hello.mutable_hello()->set_program(ProgramName(program));
  hello.mutable_hello()->set_tenant_token(tenant_token);
  if (const absl::Status text = proto::CheckUtf8(hello); !text.ok())
    return absl::InvalidArgumentError(absl::StrCat("gmb: ", text.message()));
  GMB_RETURN_IF_ERROR(socket.Send(hello.SerializeAsString(), {},
                                  /*with_credentials=*/true, deadline.Left()));

  frame = ReceiveFrame(socket, deadline, &fds);
  if (!frame.ok()) return frame.status();
  GMB_RETURN_IF_ERROR(CheckWelcome(*frame));
  GMB_ASSIGN_OR_RETURN(std::optional<ipc::GatePage> gate,
                       MapGate(frame->welcome(), fds));
  return Greeting{std::move(socket), std::move(*frame->mutable_welcome()),
                  std::move(gate), takes_streams};
}

}  // namespace

bool EndedWithItsBroker(const absl::Status& status,
                        const base::UniqueFd& broker,
                        const base::Deadline& deadline) {
  if (!absl::IsUnavailable(status) || GetErrorDetail(status).has_value())
    return false;
  if (!broker.valid()) return false;
  const base::Deadline death(std::min(kDeath, deadline.Left()));
  pollfd dead{.fd = broker.get(), .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&dead, 1,
                   static_cast<int>(absl::ToInt64Milliseconds(death.Left())));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

absl::StatusOr<Greeting> Greet(const std::string& path,
                               const std::string& program,
                               const std::string& tenant_token,
                               absl::Duration timeout) {
  const base::Deadline deadline(timeout);
  const base::Deadline gives_up(std::min(timeout, kNextBroker));
  for (;;) {
    GMB_ASSIGN_OR_RETURN(
        ipc::SeqpacketSocket socket,
        ConnectToThisBrokerOrTheNext(path, deadline, gives_up));
    absl::StatusOr<base::UniqueFd> broker = BrokerBehind(socket);
    absl::StatusOr<Greeting> greeting =
        GreetOn(std::move(socket), program, tenant_token, deadline);
    if (greeting.ok()) {
      if (broker.ok()) greeting->broker = *std::move(broker);
      return greeting;
    }
    // One that has died meanwhile can tell nothing of who listens now.
    const bool died =
        broker.ok() ? EndedWithItsBroker(greeting.status(), *broker, deadline)
                    : absl::IsUnavailable(greeting.status());
    if (!died || gives_up.IsOver()) return greeting;
  }
}

}  // namespace gmb::internal
