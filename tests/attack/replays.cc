// Says again what has been said once: a greeting on other connections, a
// session's acknowledgements, and the token of a session that is over.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kReplayPatience = absl::Seconds(10);
// A void token is refused at once.
constexpr absl::Duration kVoidPatience = absl::Milliseconds(500);
constexpr uint64_t kReplayBytes = uint64_t{2} << 20;

// A session with a lease, and every frame that it has sent so far.
class Recorded {
 public:
  static std::optional<Recorded> Make(Attack* attack) {
    const std::string& dir = attack->options().socket_dir;
    auto socket =
        ipc::SeqpacketSocket::Connect(dir + "/handle.sock", kReplayPatience);
    if (!socket.ok()) return std::nullopt;
    const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
    if (!nonce.ok()) return std::nullopt;
    Recorded recorded(attack, *std::move(socket), HelloFrame(*nonce));
    if (!recorded.Greet() || !recorded.Lease()) return std::nullopt;
    return recorded;
  }

  [[nodiscard]] const std::string& hello() const { return hello_; }

  // Says one of its frames again where it said it first.
  void Repeat(bool hello) {
    (void)socket_
        .Send(hello ? hello_ : acks_.front(), {}, /*with_credentials=*/hello,
              kReplayPatience)
        .ok();
    const bool ended = AwaitEnd();
    attack_->Count(!ended  ? "not_ended"
                   : hello ? "hello_refused"
                           : "ack_refused");
  }

  // As soon as the session is over: its token on the connection that served it,
  // and on a new one.
  void UseToken() {
    stream_.OpenCall(token_);
    Judge(&stream_);
    HandStream anew;
    if (anew.Open(attack_->options().socket_dir, token_)) Judge(&anew);
  }

 private:
  Recorded(Attack* attack, ipc::SeqpacketSocket socket, std::string hello)
      : attack_(attack), socket_(std::move(socket)), hello_(std::move(hello)) {}

  bool Greet() {
    if (!socket_.Send(hello_, {}, /*with_credentials=*/true, kReplayPatience)
             .ok()) {
      return false;
    }
    const absl::StatusOr<ipc::Packet> packet = socket_.Receive(kReplayPatience);
    v1::BrokerFrame frame;
    if (!packet.ok() || !frame.ParseFromString(packet->bytes) ||
        !frame.has_welcome()) {
      return false;
    }
    token_ = frame.welcome().token();
    return true;
  }

  bool Lease() {
    if (!stream_.Open(attack_->options().socket_dir, token_)) return false;
    const auto grant = stream_.Ask(AcquireOf(kReplayBytes), kReplayPatience);
    if (!grant.has_value() || !grant->has_grant()) return false;
    const absl::StatusOr<std::vector<Slab>> slabs =
        TakeSlabs(socket_, grant->grant().slabs(), &acks_);
    if (!slabs.ok() || acks_.empty()) return false;
    for (const Slab& slab : *slabs) {
      if (HasBytesOfOthers(slab)) attack_->Count("bytes_of_others");
      FillWithOwn(slab);
    }
    attack_->Count("recorded");
    return true;
  }

  // Anything sent meanwhile would be slabs: nothing else is said on it.
  bool AwaitEnd() {
    const absl::StatusOr<ipc::Packet> more = socket_.Receive(kReplayPatience);
    if (more.ok()) attack_->Count("slabs_again");
    return absl::IsUnavailable(more.status());
  }

  void Judge(HandStream* stream) {
    const uint64_t asked = stream->Send(AcquireOf(kReplayBytes));
    const auto answer = stream->Answer(asked, kVoidPatience);
    attack_->Count(!answer.has_value()   ? "token_refused"
                   : answer->has_grant() ? "leased"
                                         : "answered");
  }

  Attack* attack_;
  ipc::SeqpacketSocket socket_;
  HandStream stream_;
  std::string hello_;
  std::string token_;
  std::vector<std::string> acks_;
};

// The recorded Hello on a connection of its own.
void GreetAgain(Attack& attack, const std::string& hello) {
  auto socket = ipc::SeqpacketSocket::Connect(
      attack.options().socket_dir + "/handle.sock", kReplayPatience);
  if (!socket.ok() || !ReceiveNonce(*socket).ok()) return;
  (void)socket->Send(hello, {}, /*with_credentials=*/true, kReplayPatience)
      .ok();
  const absl::StatusOr<ipc::Packet> answer = socket->Receive(kReplayPatience);
  v1::BrokerFrame frame;
  if (!answer.ok() || !frame.ParseFromString(answer->bytes)) {
    attack.Count("greeting_unanswered");
  } else if (frame.refused().detail().field() == "nonce") {
    attack.Count("greeting_refused");
  } else {
    attack.Count(frame.has_welcome() ? "greeted_again" : "turned_away");
  }
}

}  // namespace

absl::Status Replays(Attack& attack) {
  // With a session of this process new connections reach gRPC, whatever has
  // become of the others.
  std::optional<OwnSession> own;
  for (bool hello = false; attack.GoesOn(); hello = !hello) {
    if (!own.has_value() || !own->Lives()) {
      absl::StatusOr<OwnSession> greeted =
          OwnSession::Greet(attack.options().socket_dir);
      if (!greeted.ok()) continue;
      own.emplace(*std::move(greeted));
    }
    std::optional<Recorded> recorded = Recorded::Make(&attack);
    if (!recorded.has_value()) {
      attack.Count("not_recorded");
      continue;
    }
    GreetAgain(attack, recorded->hello());
    recorded->Repeat(hello);
    recorded->UseToken();
    GreetAgain(attack, recorded->hello());
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
