// Fds of every odd kind, sent at every moment at which a client might send
// some.
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/odd_files.h"
#include "tests/attack/own_session.h"
#include "tests/attack/send_fds.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kOddFdsPatience = absl::Seconds(5);
constexpr int kHangUpMs = 1'000;

std::vector<base::UniqueFd> CopyOf(const base::UniqueFd& fd) {
  std::vector<base::UniqueFd> copy;
  copy.emplace_back(::dup(fd.get()));
  return copy;
}

void AwaitHangUp(int fd) {
  pollfd peer{.fd = fd, .events = POLLRDHUP, .revents = 0};
  (void)::poll(&peer, 1, kHangUpMs);
}

class Sending {
 public:
  Sending(Attack* attack, const OddFile& file)
      : attack_(attack), file_(file), dir_(attack->options().socket_dir) {}

  void BeforeTheGreeting() {
    const base::UniqueFd handle =
        ConnectNow(dir_ + "/handle.sock", SOCK_SEQPACKET);
    if (handle.valid()) Send(handle.get(), "x");
  }
  void WithHello() {
    auto socket =
        ipc::SeqpacketSocket::Connect(dir_ + "/handle.sock", kOddFdsPatience);
    if (!socket.ok()) return;
    const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
    if (nonce.ok()) Send(socket->fd(), HelloFrame(*nonce));
  }
  void AfterTheGreeting() {
    absl::StatusOr<OwnSession> session = OwnSession::Greet(dir_);
    if (session.ok()) Send(session->socket().fd(), "x");
  }
  // The fd is still there, unread, when the connection ends.
  void ToGrpcWithoutASession() {
    HttpConnection connection;
    if (connection.Connect(dir_ + "/gmb.sock"))
      (void)SendOnly(connection.fd(), Opening());
  }
  void ToGrpcAtFirst() {
    absl::StatusOr<OwnSession> session = OwnSession::Greet(dir_);
    HttpConnection connection;
    if (session.ok() && connection.Connect(dir_ + "/gmb.sock"))
      Send(connection.fd(), Opening());
  }
  void ToGrpcDuringACall() {
    absl::StatusOr<OwnSession> session = OwnSession::Greet(dir_);
    HandStream stream;
    v1::ClientMessage ask;
    ask.mutable_get_quota();
    if (session.ok() && stream.Open(dir_, session->welcome().token()) &&
        stream.Ask(ask, kOddFdsPatience).has_value()) {
      Send(stream.fd(), Frame(FrameType::kPing, 0, 0, "12345678"));
    }
  }
  // The connection lies unread in itself.
  void ItsOwnConnection() {
    const base::UniqueFd handle =
        ConnectNow(dir_ + "/handle.sock", SOCK_SEQPACKET);
    if (handle.valid()) (void)SendFds(handle.get(), "x", CopyOf(handle));
  }

 private:
  bool SendOnly(int socket, const std::string& bytes) {
    const int error = SendFds(socket, bytes, CopyOf(file_.fd));
    attack_->Count(file_.kind + (error == 0 ? "" : "_not_sent"));
    return error == 0;
  }
  void Send(int socket, const std::string& bytes) {
    if (SendOnly(socket, bytes)) AwaitHangUp(socket);
  }

  Attack* const attack_;
  const OddFile& file_;
  const std::string dir_;
};

}  // namespace

absl::Status OddFds(Attack& attack) {
  const std::vector<OddFile> files = MakeOddFiles();
  for (size_t turn = 0; attack.GoesOn(); ++turn) {
    Sending sending(&attack, files[turn % files.size()]);
    sending.BeforeTheGreeting();
    sending.WithHello();
    sending.AfterTheGreeting();
    sending.ToGrpcWithoutASession();
    sending.ToGrpcAtFirst();
    sending.ToGrpcDuringACall();
    sending.ItsOwnConnection();
    if (turn >= files.size()) ::poll(nullptr, 0, 1);
    if (turn == files.size()) attack.Count("all_kinds");
  }
  return absl::OkStatus();
}

// Cycles for the kernel's collector, faster than it collects: others' fds wait
// for it on some kernels.
absl::Status InflightCycles(Attack& attack) {
  constexpr uint64_t kMost = 20'000;
  for (uint64_t made = 0; attack.GoesOn(); ++made) {
    if (made >= kMost) {
      ::poll(nullptr, 0, 5);
      continue;
    }
    SocketPair pair = MakeSocketPair(SOCK_DGRAM);
    (void)SendFds(pair.ends[0].get(), "x", CopyOf(pair.ends[1]));
    (void)SendFds(pair.ends[1].get(), "x", CopyOf(pair.ends[0]));
    attack.Count("cycles");
    if (made % 16 == 0) {
      const base::UniqueFd handle = ConnectNow(
          attack.options().socket_dir + "/handle.sock", SOCK_SEQPACKET);
      if (handle.valid())
        (void)SendFds(handle.get(), "x", CopyOf(pair.ends[0]));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
