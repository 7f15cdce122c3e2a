// A client that stops for ever, or dies, at one step of its life.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/attack/attack.h"
#include "tests/attack/halt_at.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kHaltPatience = absl::Seconds(30);
constexpr uint64_t kHaltBytes = uint64_t{8} << 20;

class Life {
 public:
  explicit Life(const AttackOptions& options) : options_(options) {}

  absl::Status Live() {
    auto socket = ipc::SeqpacketSocket::Connect(
        options_.socket_dir + "/handle.sock", kHaltPatience);
    if (!socket.ok()) return socket.status();
    At("connected");
    const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
    if (!nonce.ok()) return nonce.status();
    At("challenged");
    const absl::Status sent =
        socket->Send(HelloFrame(*nonce), {}, true, kHaltPatience);
    if (!sent.ok()) return sent;
    At("hello_sent");
    socket = absl::UnavailableError("done");  // the rest with a session
    return LiveOn();
  }

 private:
  absl::Status LiveOn() {
    absl::StatusOr<OwnSession> session = OwnSession::Greet(options_.socket_dir);
    if (!session.ok()) return session.status();
    At("welcomed");
    HandStream stream;
    if (!stream.Open(options_.socket_dir, session->welcome().token()))
      return absl::UnavailableError("no stream");
    At("stream_opened");
    const uint64_t acquire = stream.Send(AcquireOf(kHaltBytes));
    At("acquire_sent");
    const auto grant = stream.Answer(acquire, kHaltPatience);
    if (!grant.has_value() || !grant->has_grant())
      return absl::UnavailableError("no grant");
    At("granted");
    const uint64_t lease = grant->grant().lease_id();
    auto slabs = TakeSlabs(session->socket(), grant->grant().slabs());
    if (!slabs.ok()) return slabs.status();
    At("acknowledged");
    stream.Send(MappedOf(lease, 0));
    At("mapped");
    slabs->clear();
    stream.Send(ReleaseOf(lease));
    At("release_sent");
    return absl::InvalidArgumentError("there is no such step");
  }

  void At(const std::string& step) const { HaltAt(options_, step); }

  const AttackOptions& options_;
};

}  // namespace

void HaltAt(const AttackOptions& options, const std::string& step) {
  if (step != options.step) return;
  std::printf("at %s\n", step.c_str());
  std::fflush(stdout);
  ::raise(options.then == "kill" ? SIGKILL : SIGSTOP);
  ::_exit(0);
}

absl::Status Halts(Attack& attack) { return Life(attack.options()).Live(); }

}  // namespace gmb::attack
