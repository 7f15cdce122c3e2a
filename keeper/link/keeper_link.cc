// From a broker, or a command, to its keeper: who is there, and one question
// after the other.
#include "keeper/link/keeper_link.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "keeper/link/keeper_place.h"

namespace gmb::keeper {
namespace {

constexpr absl::Duration kDialAgain = absl::Milliseconds(20);

// The listener's user: a socket of a stranger could be put into our directory
// by root alone, but then it takes one look to see.
absl::Status CheckOwner(int socket, const std::string& path) {
  GMB_ASSIGN_OR_RETURN(const ipc::PeerCredentials peer,
                       ipc::ConnectedPeer(socket));
  if (peer.uid == ::geteuid()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the socket is another user's, and no keeper of ours: ", path,
      " is listened on by uid ", peer.uid));
}

// As the kernel has it; false also where it does not say.
bool IsStopped(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  // Behind the program's name, which may have anything in it.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size())
    return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

absl::Status Silent(int socket, absl::string_view what) {
  const absl::StatusOr<ipc::PeerCredentials> peer = ipc::ConnectedPeer(socket);
  const pid_t pid = peer.ok() ? peer->pid : 0;
  if (pid > 0 && IsStopped(pid)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the keeper does not ", what, ": it is stopped, pid ", pid,
                     ": let it go on with kill -CONT ", pid));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the keeper does not ", what, " in time",
                   pid > 0 ? absl::StrCat(", pid ", pid) : "",
                   ": is it stopped, or its machine overloaded?"));
}

}  // namespace

absl::StatusOr<ipc::SeqpacketSocket> KeeperLink::Dial(
    const LinkOptions& options) {
  GMB_ASSIGN_OR_RETURN(const KeeperPlace place,
                       KeeperPlace::Open(options.socket, /*make=*/false));
  absl::StatusOr<ipc::SeqpacketSocket> socket =
      ipc::SeqpacketSocket::Connect(place.socket(), options.timeout);
  if (absl::IsUnavailable(socket.status())) {
    return absl::UnavailableError(
        absl::StrCat("no keeper listens at ", options.socket,
                     ": start one with gmb-keeper --socket ", options.socket));
  }
  return socket;
}

absl::StatusOr<KeeperLink> KeeperLink::Connect(const LinkOptions& options) {
  const auto until = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(options.wait_for_listener);
  absl::StatusOr<KeeperLink> link = TryConnect(options);
  while (absl::IsUnavailable(link.status()) &&
         std::chrono::steady_clock::now() < until) {
    absl::SleepFor(kDialAgain);
    link = TryConnect(options);
  }
  return link;
}

absl::StatusOr<KeeperLink> KeeperLink::TryConnect(const LinkOptions& options) {
  GMB_ASSIGN_OR_RETURN(ipc::SeqpacketSocket socket, Dial(options));
  GMB_RETURN_IF_ERROR(CheckOwner(socket.fd(), options.socket));
  KeeperLink link(std::move(socket), options);
  GMB_RETURN_IF_ERROR(link.Greet(options));
  return link;
}

absl::Status KeeperLink::Greet(const LinkOptions& options) {
  absl::StatusOr<Frame> challenge_frame = Receive(timeout_, nullptr);
  if (absl::IsDeadlineExceeded(challenge_frame.status()))
    return Silent(socket_.fd(), "greet");
  GMB_ASSIGN_OR_RETURN(const Frame challenge, std::move(challenge_frame));
  if (challenge.kind == Kind::kRefused) return DecodeRefusal(challenge.body);
  if (challenge.kind != Kind::kChallenge ||
      challenge.body.size() != kNonceBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "what listens there does not greet as a keeper: ", options.socket));
  }
  const bool waits = options.wait_for_last > absl::ZeroDuration();
  const Hello hello{.oldest_version = kOldestVersion,
                    .newest_version = kNewestVersion,
                    .role = options.role,
                    .wait = waits,
                    .nonce = challenge.body};
  const std::string packet =
      Encode(Frame{Kind::kHello, ++last_call_, Encode(hello)});
  GMB_RETURN_IF_ERROR(
      socket_.Send(packet, {}, /*with_credentials=*/true, timeout_));
  absl::StatusOr<Frame> first = Receive(timeout_, nullptr);
  if (absl::IsDeadlineExceeded(first.status()))
    return Silent(socket_.fd(), "answer a greeting");
  GMB_ASSIGN_OR_RETURN(Frame answer, std::move(first));
  if (answer.kind == Kind::kWait) {
    const absl::Status why = DecodeRefusal(answer.body);
    absl::StatusOr<Frame> later = Receive(options.wait_for_last, nullptr);
    // The reason to wait is the better message.
    if (absl::IsDeadlineExceeded(later.status())) return why;
    if (!later.ok()) return later.status();
    answer = *std::move(later);
  }
  if (answer.kind == Kind::kRefused) return DecodeRefusal(answer.body);
  if (answer.kind != Kind::kWelcome || answer.call != last_call_) {
    return absl::InvalidArgumentError("the keeper does not welcome a broker");
  }
  GMB_ASSIGN_OR_RETURN(welcome_, DecodeWelcome(answer.body));
  if (welcome_.version < kOldestVersion || welcome_.version > kNewestVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the keeper speaks version ", welcome_.version,
                     " of its protocol, and this program none but ",
                     kOldestVersion, " to ", kNewestVersion));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeeperLink::Answer> KeeperLink::Ask(Kind kind,
                                                   absl::string_view body,
                                                   absl::Span<const int> fds,
                                                   Kind expected) {
  if (broken_) {
    return absl::UnavailableError(
        "the connection to the keeper is broken: connect again");
  }
  broken_ = true;  // until all has gone well
  const std::string packet =
      Encode(Frame{kind, ++last_call_, std::string(body)});
  const absl::Status sent = socket_.Send(packet, fds, false, timeout_);
  if (absl::IsDeadlineExceeded(sent))
    return Silent(socket_.fd(), "read its socket");
  unasked_ = absl::IsResourceExhausted(sent);
  if (unasked_) broken_ = false;  // nothing was sent
  if (!sent.ok()) return sent;
  Answer answer;
  absl::StatusOr<Frame> frame = Receive(timeout_, &answer.fds);
  if (absl::IsDeadlineExceeded(frame.status()))
    return Silent(socket_.fd(), "answer");
  if (!frame.ok()) return frame.status();
  // Of this connection as a whole, which ends.
  if (frame->kind == Kind::kRefused && frame->call == 0)
    return DecodeRefusal(frame->body);
  if (frame->call != last_call_) {
    return absl::InvalidArgumentError(
        "the keeper has answered another question");
  }
  if (frame->kind != expected && frame->kind != Kind::kRefused) {
    return absl::InvalidArgumentError(
        absl::StrCat("the keeper's answer is of an unexpected kind: ",
                     static_cast<int>(frame->kind)));
  }
  broken_ = false;
  if (frame->kind == Kind::kRefused) return DecodeRefusal(frame->body);
  answer.body = std::move(frame->body);
  return answer;
}

bool KeeperLink::HasUnread() {
  const absl::StatusOr<std::optional<ipc::Packet>> packet =
      socket_.TryReceive();
  return packet.ok() ? packet->has_value()
                     : !absl::IsUnavailable(packet.status());
}

absl::StatusOr<Frame> KeeperLink::Receive(absl::Duration timeout,
                                          std::vector<base::UniqueFd>* fds) {
  absl::StatusOr<ipc::Packet> packet = socket_.Receive(timeout);
  if (absl::IsUnavailable(packet.status())) {
    return absl::UnavailableError(
        "the keeper has hung up: it died, or ended this connection");
  }
  if (!packet.ok()) return packet.status();
  if (fds != nullptr) {
    *fds = std::move(packet->fds);
  } else if (!packet->fds.empty()) {
    return absl::InvalidArgumentError("the keeper has sent fds unasked");
  }
  return Decode(packet->bytes);
}

}  // namespace gmb::keeper
