// A process greets, passes everything that it has on to another one, and dies:
// its session is over, although its sockets are still open.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kPassPatience = absl::Seconds(10);
constexpr absl::Duration kReply = absl::Milliseconds(300);
constexpr int kAnswered = 10;
constexpr int kNotEnded = 11;

// The heir's use of the dead process's sockets; how it went.
int Inherit(OwnSession* session, HandStream* stream,
            const std::string& socket_dir) {
  const absl::Time deadline = absl::Now() + kPassPatience;
  while (session->Lives()) {
    if (absl::Now() > deadline) return kNotEnded;
    ::poll(nullptr, 0, 2);
  }
  const std::string token = session->welcome().token();
  v1::ClientMessage ask;
  ask.mutable_get_quota();
  // The dead process's own connection, an old call and a new one, and one that
  // the heir makes.
  if (stream->Ask(ask, kReply).has_value()) return kAnswered;
  if (stream->is_open()) {
    stream->OpenCall(token);
    if (stream->Ask(ask, kReply).has_value()) return kAnswered;
  }
  HandStream anew;
  if (anew.Open(socket_dir, token) && anew.Ask(ask, kReply).has_value()) {
    return kAnswered;
  }
  return 0;
}

// In a child that dies of it; its own child is the heir.
[[noreturn]] void GreetAndDie(const std::string& socket_dir, int report) {
  absl::StatusOr<OwnSession> session = OwnSession::Greet(socket_dir);
  HandStream stream;
  v1::ClientMessage ask;
  ask.mutable_get_quota();
  if (!session.ok() || !stream.Open(socket_dir, session->welcome().token()) ||
      !stream.Ask(ask, kPassPatience).has_value()) {
    ::_exit(1);
  }
  if (::fork() == 0) {
    const auto said =
        static_cast<char>(Inherit(&*session, &stream, socket_dir));
    (void)::write(report, &said, 1);
    ::_exit(0);
  }
  ::raise(SIGKILL);
  ::_exit(1);
}

}  // namespace

absl::Status PassedOn(Attack& attack) {
  while (attack.GoesOn()) {
    int report[2];
    if (::pipe(report) != 0) return absl::InternalError("no pipe");
    const pid_t child = ::fork();
    if (child == 0) GreetAndDie(attack.options().socket_dir, report[1]);
    ::close(report[1]);
    ::waitpid(child, nullptr, 0);
    char said = 0;
    const bool heard = ::read(report[0], &said, 1) == 1;
    ::close(report[0]);
    attack.Count(!heard              ? "not_greeted"
                 : said == kAnswered ? "answered_to_the_heir"
                 : said == kNotEnded ? "not_ended"
                                     : "ended");
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
