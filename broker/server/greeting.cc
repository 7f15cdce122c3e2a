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

absl::StatusOr<ProvedHello> Greeting::OnPacket(
    const ipc::Packet& packet) const {
  v1::ClientFrame frame;
  if (!packet.fds.empty())
    return proto::MakeError(v1::BAD_REQUEST, "a Hello carries no fds");
  if (!frame.ParseFromString(packet.bytes) || !frame.has_hello()) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "the first frame of a client is a Hello");
  }
  const v1::Hello& hello = frame.hello();
  const absl::Status checked = CheckFields(hello);
  if (!checked.ok()) return checked;
  if (!ipc::ConstantTimeEquals(hello.nonce(), nonce_)) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "the Hello does not answer this socket's Challenge",
                            {.field = "nonce"});
  }
  if (!packet.credentials.has_value() || packet.credentials->pid != peer_.pid ||
      packet.credentials->uid != peer_.uid) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "the Hello comes from another process than the one that "
        "connected: connect "
        "again after a fork");
  }
  return ProvedHello{.program = hello.program(),
                     .tenant_token = hello.tenant_token()};
}

}  // namespace gmb::broker
