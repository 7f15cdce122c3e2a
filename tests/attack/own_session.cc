// The greeting, so that attacks can come from a tenant's process as well as
// from a stranger.
#include "tests/attack/own_session.h"

#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace gmb::attack {
namespace {

// The broker may be under attack from others like this one.
constexpr absl::Duration kSessionPatience = absl::Seconds(10);
constexpr size_t kTokenBytes = 16;

absl::StatusOr<v1::BrokerFrame> ReceiveFrame(
    ipc::SeqpacketSocket& socket, std::vector<base::UniqueFd>* fds = nullptr) {
  absl::StatusOr<ipc::Packet> packet = socket.Receive(kSessionPatience);
  if (!packet.ok()) return packet.status();
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet->bytes))
    return absl::InternalError("garbage in the greeting");
  if (frame.has_refused())
    return absl::UnavailableError(frame.refused().message());
  if (fds != nullptr) *fds = std::move(packet->fds);
  return frame;
}

}  // namespace

absl::StatusOr<std::string> ReceiveNonce(ipc::SeqpacketSocket& socket) {
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(socket);
  if (!challenge.ok()) return challenge.status();
  return challenge->challenge().nonce();
}

std::string HelloFrame(const std::string& nonce) {
  v1::ClientFrame hello;
  hello.mutable_hello()->set_protocol_version(1);
  hello.mutable_hello()->set_nonce(nonce);
  hello.mutable_hello()->set_program("attacker");
  return hello.SerializeAsString();
}

absl::StatusOr<OwnSession> OwnSession::Greet(const std::string& socket_dir) {
  auto socket = ipc::SeqpacketSocket::Connect(socket_dir + "/handle.sock",
                                              kSessionPatience);
  if (!socket.ok()) return socket.status();
  const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
  if (!nonce.ok()) return nonce.status();
  const absl::Status sent =
      socket->Send(HelloFrame(*nonce), {},
                   /*with_credentials=*/true, kSessionPatience);
  if (!sent.ok()) return sent;
  std::vector<base::UniqueFd> fds;
  absl::StatusOr<v1::BrokerFrame> welcome = ReceiveFrame(*socket, &fds);
  if (!welcome.ok()) return welcome.status();
  return OwnSession(*std::move(socket), std::move(*welcome->mutable_welcome()),
                    fds.empty() ? base::UniqueFd() : std::move(fds.front()));
}

bool OwnSession::Lives() {
  while (true) {
    const auto packet = socket_.TryReceive();
    if (absl::IsUnavailable(packet.status())) return false;
    if (!packet.ok() || !packet->has_value()) return true;
  }
}

bool Sessions::Ready() {
  if (!attack_->options().greet) return true;
  if (session_.has_value() && !session_->Lives()) {
    attack_->Count("sessions_lost");
    session_.reset();
  }
  if (session_.has_value()) return true;
  absl::StatusOr<OwnSession> greeted =
      OwnSession::Greet(attack_->options().socket_dir);
  attack_->Count(greeted.ok() ? "sessions" : "greetings_failed");
  if (greeted.ok()) session_.emplace(*std::move(greeted));
  return session_.has_value();
}

std::string Sessions::Token() const {
  return session_.has_value() ? session_->welcome().token()
                              : std::string(kTokenBytes, '\0');
}

}  // namespace gmb::attack
