// Greetings in the name of another process: with its pid, with another uid, and
// by a child in its parent's name.
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/attack/attack.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kLoanPatience = absl::Seconds(5);

// 0, or errno: the kernel lets only root say what is not so.
int SendAs(int socket, const std::string& bytes, const ucred& who) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()),
             .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(who))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_CREDENTIALS;
  header->cmsg_len = CMSG_LEN(sizeof(who));
  std::memcpy(CMSG_DATA(header), &who, sizeof(who));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

class Impostor {
 public:
  explicit Impostor(Attack* attack) : attack_(attack) {}

  void GreetAs(const ucred& who, const std::string& as) {
    auto socket = ipc::SeqpacketSocket::Connect(
        attack_->options().socket_dir + "/handle.sock", kLoanPatience);
    if (!socket.ok()) return;
    const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
    if (!nonce.ok()) return;
    const int error = SendAs(socket->fd(), HelloFrame(*nonce), who);
    if (error != 0) {
      attack_->Count(as + "_not_sent");
      return;
    }
    Judge(*socket, as);
  }

  // A child says Hello on a connection of its parent's.
  void GreetByChild() {
    auto socket = ipc::SeqpacketSocket::Connect(
        attack_->options().socket_dir + "/handle.sock", kLoanPatience);
    if (!socket.ok()) return;
    const absl::StatusOr<std::string> nonce = ReceiveNonce(*socket);
    if (!nonce.ok()) return;
    const pid_t child = ::fork();
    if (child == 0) {
      const ucred own{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()};
      ::_exit(SendAs(socket->fd(), HelloFrame(*nonce), own));
    }
    ::waitpid(child, nullptr, 0);
    Judge(*socket, "child");
  }

 private:
  void Judge(ipc::SeqpacketSocket& socket, const std::string& as) {
    const absl::StatusOr<ipc::Packet> answer = socket.Receive(kLoanPatience);
    v1::BrokerFrame frame;
    const bool welcomed = answer.ok() && frame.ParseFromString(answer->bytes) &&
                          frame.has_welcome();
    attack_->Count(welcomed ? "welcomed" : as + "_refused");
  }

  Attack* const attack_;
};

}  // namespace

absl::Status BorrowedIdentity(Attack& attack) {
  Impostor impostor(&attack);
  const ucred self{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()};
  while (attack.GoesOn()) {
    ucred other = self;
    other.pid = attack.options().pid;
    impostor.GreetAs(other, "pid");
    other = self;
    other.uid = self.uid + 1;
    impostor.GreetAs(other, "uid");
    impostor.GreetByChild();
    ::poll(nullptr, 0, 5);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
