// The first step of a session: the peer proves which process it is.
#include "broker/server/greeting.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/server/handle_frames.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/random.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

absl::Status CheckFields(const v1::Hello& hello) {
  if (hello.protocol_version() != kHandleProtocolVersion) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat(
            "this broker speaks another protocol version; use a client "
            "library of its release: broker=",
            kHandleProtocolVersion, " client=", hello.protocol_version()),
        {.field = "protocol_version"});
  }
  const std::string& program = hello.program();
  if (program.size() > Greeting::kMaxProgramBytes ||
      !std::all_of(program.begin(), program.end(), absl::ascii_isprint)) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("the program's name has more than ",
                     Greeting::kMaxProgramBytes,
                     " characters, or some that are not printable ASCII"),
        {.field = "program"});
  }
  if (hello.tenant_token().size() > Greeting::kMaxTenantTokenBytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("the tenant token has more than ",
                     Greeting::kMaxTenantTokenBytes, " bytes"),
        {.field = "tenant_token"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Greeting> Greeting::Start(const ipc::PeerCredentials& peer) {
  absl::StatusOr<std::string> nonce = ipc::RandomToken(kNonceBytes);
  if (!nonce.ok()) return nonce.status();
  return Greeting(*std::move(nonce), peer);
}

Greeting::Greeting(std::string nonce, const ipc::PeerCredentials& peer)
    : nonce_(std::move(nonce)), peer_(peer) {}

bool Greeting::IsOfPeer(const ipc::Packet& packet) const {
  return packet.credentials.has_value() &&
         packet.credentials->pid == peer_.pid &&
         packet.credentials->uid == peer_.uid;
}

absl::StatusOr<std::variant<ProvedHello, AskedStream>> Greeting::OnPacket(
    const ipc::Packet& packet) const {
  v1::ClientFrame frame;
  if (!packet.fds.empty())
    return proto::MakeError(v1::BAD_REQUEST, "a first frame carries no fds");
  if (packet.bytes.size() > kMaxFirstBytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("the first frame of a client is a Hello, or an "
                     "OpenStream, of at most ",
                     kMaxFirstBytes, " bytes; this one has ",
                     packet.bytes.size()));
  }
  if (!frame.ParseFromString(packet.bytes) ||
      !(frame.has_hello() || frame.has_open_stream())) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "the first frame of a client is a Hello, or an OpenStream");
  }
  if (frame.has_hello()) {
    if (const absl::Status checked = CheckFields(frame.hello()); !checked.ok())
      return checked;
    if (!ipc::ConstantTimeEquals(frame.hello().nonce(), nonce_)) {
      return proto::MakeError(
          v1::BAD_REQUEST, "the Hello does not answer this socket's Challenge",
          {.field = "nonce"});
    }
  }
  if (!IsOfPeer(packet)) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "the first frame comes from another process than the one that "
        "connected: connect again after a fork");
  }
  if (frame.has_open_stream())
    return AskedStream{.token = frame.open_stream().token()};
  return ProvedHello{.program = frame.hello().program(),
                     .tenant_token = frame.hello().tenant_token()};
}

}  // namespace gmb::broker
