// Sockets that hold up whoever closes them, sent to the broker to be closed by
// it.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/lingering_socket.h"
#include "tests/attack/own_session.h"
#include "tests/attack/send_fds.h"

namespace gmb::attack {
namespace {

// Enough to hold up whoever closes them for as long as the attack goes on.
constexpr size_t kMostReaders = 4'096;
constexpr absl::Duration kKept = absl::Seconds(1);
constexpr int kLingerPauseMs = 5;

class Lingering {
 public:
  Lingering(Attack* attack, int type, std::string path, std::string bytes)
      : attack_(attack),
        type_(type),
        path_(std::move(path)),
        bytes_(std::move(bytes)) {}

  // One connection more with as many sockets as the options say.
  absl::Status Turn() {
    if (readers_.size() >= kMostReaders) return absl::OkStatus();
    std::vector<base::UniqueFd> readers;
    std::vector<base::UniqueFd> poison;
    for (int i = 0; i < attack_->options().fds; ++i) {
      absl::StatusOr<LingeringSocket> made = MakeLingeringSocket();
      if (!made.ok()) return made.status();
      poison.push_back(std::move(made->poison));
      readers.push_back(std::move(made->reader));
    }
    // Sent at once and then closed, so that the broker's are the last ones.
    base::UniqueFd connection = ConnectNow(path_, type_);
    if (!connection.valid()) {
      attack_->Count("refused");
      for (const base::UniqueFd& fd : poison) DoNotLinger(fd);
      return absl::OkStatus();
    }
    attack_->Count("connections");
    const int error = SendFds(connection.get(), bytes_, poison);
    if (error == 0) {
      poison.clear();
      for (base::UniqueFd& reader : readers)
        readers_.push_back(std::move(reader));
    }
    attack_->Count(error == 0 ? "sent" : "not_sent");
    for (const base::UniqueFd& fd : poison) DoNotLinger(fd);
    if (error != 0 && error != EPERM && error != EAGAIN && error != EPIPE &&
        error != ECONNRESET && error != ETOOMANYREFS) {
      return absl::ErrnoToStatus(error, "cannot send fds");
    }
    Keep(std::move(connection));
    return absl::OkStatus();
  }

 private:
  static void DoNotLinger(const base::UniqueFd& fd) {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  }

  // The broker reads it meanwhile.
  void Keep(base::UniqueFd connection) {
    open_.push_back({absl::Now(), std::move(connection)});
    const auto most = static_cast<size_t>(attack_->options().connections);
    if (open_.size() <= most) return;
    absl::SleepFor(open_.front().since + kKept - absl::Now());
    open_.pop_front();
  }

  struct Open {
    absl::Time since;
    base::UniqueFd connection;
  };
  Attack* const attack_;
  const int type_;
  const std::string path_;
  const std::string bytes_;
  std::deque<Open> open_;
  std::vector<base::UniqueFd> readers_;  // of what was sent
};

// Where the broker was quicker, this process is the last to close, and sleeps
// until it gets a signal.
void WakeOften() {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;  // a close ends all the same
  ::sigaction(SIGALRM, &nothing, nullptr);
  constexpr timeval kOften{.tv_sec = 0, .tv_usec = 5'000};
  const itimerval often{.it_interval = kOften, .it_value = kOften};
  ::setitimer(ITIMER_REAL, &often, nullptr);
}

absl::Status Run(Attack& attack, int type, const std::string& name,
                 const std::string& bytes) {
  WakeOften();
  Sessions sessions(&attack);
  Lingering lingering(&attack, type, attack.options().socket_dir + "/" + name,
                      bytes);
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, kLingerPauseMs);
    if (!sessions.Ready()) continue;
    const absl::Status turned = lingering.Turn();
    if (!turned.ok()) return turned;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LingerFdHandle(Attack& attack) {
  return Run(attack, SOCK_SEQPACKET, "handle.sock", "x");
}

absl::Status LingerFdGrpc(Attack& attack) {
  return Run(attack, SOCK_STREAM, "gmb.sock", Opening());
}

}  // namespace gmb::attack
