// The peers that talk to the keeper: one broker at a time, and commands.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/foreign_fds.h"
#include "ipc/pidfd.h"
#include "ipc/random.h"
#include "keeper/server.h"

namespace gmb::keeper {
namespace {

// To the disposer.
constexpr char kDoor[] = "connections";

absl::Status Uninvited(const ipc::PeerCredentials& peer) {
  return absl::PermissionDeniedError(
      absl::StrCat("this keeper serves its own user alone: run as uid ",
                   ::geteuid(), " instead of uid ", peer.uid));
}

// The reason to wait, or to be refused.
absl::Status Busy(const Holder& holder) {
  const std::string who = NameOf(holder.process);
  if (holder.connected) {
    return absl::FailedPreconditionError(
        absl::StrCat("another broker is served by this keeper: ", who,
                     ": stop it, or give this one a keeper of its own"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the last broker has hung up and still lives, so it may still write to "
      "what is kept: ",
      who,
      holder.process.pid > 0
          ? ": end it (kill -KILL, also where it is stopped)"
          : ": end it by restarting its container or its pod"));
}

}  // namespace

void Server::OnListener() {
  for (size_t i = 0; i < kMostConnections; ++i) {
    if (disposer_->IsCrowded(kDoor)) return Listen(false);
    absl::StatusOr<std::optional<base::UniqueFd>> accepted =
        listener_.TryAccept();
    // The connection stays in the backlog, and would wake us again at once.
    if (!accepted.ok()) return Listen(false);
    if (!accepted->has_value()) return;
    MakeRoom();
    (void)Challenge(**std::move(accepted));
  }
}

void Server::Listen(bool on) {
  listens_again_.reset();
  if (!on) listens_again_ = std::chrono::steady_clock::now() + kAcceptPause;
  (void)epoll_.Change(listener_.fd(), {ipc::EpollTag::kListener, 0},
                      on ? uint32_t{EPOLLIN} : 0);
}

absl::Status Server::Challenge(base::UniqueFd fd) {
  Connection connection(std::move(fd));
  const auto greet = [&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(connection.peer, connection.socket.peer());
    if (connection.peer.uid != ::geteuid())
      return Refuse(&connection, 0, Uninvited(connection.peer));
    GMB_ASSIGN_OR_RETURN(
        connection.pidfd,
        ipc::OpenPeerPidfd(connection.socket.fd(), connection.peer.pid));
    GMB_ASSIGN_OR_RETURN(connection.nonce, ipc::RandomToken(kNonceBytes));
    GMB_RETURN_IF_ERROR(connection.socket.EnableCredentials());
    GMB_RETURN_IF_ERROR(
        Answer(&connection, Kind::kChallenge, 0, connection.nonce));
    connection.greets_by = std::chrono::steady_clock::now() + kGreetingTime;
    return epoll_.Add(connection.socket.fd(),
                      {ipc::EpollTag::kSocket, last_connection_ + 1},
                      EPOLLIN | EPOLLRDHUP);
  };
  const absl::Status greeted = greet();
  if (!greeted.ok() || !connection.pidfd.valid()) {
    disposer_->Dispose(std::move(connection.socket).Release(), kDoor);
    return greeted;
  }
  connections_.emplace(++last_connection_, std::move(connection));
  return absl::OkStatus();
}

// The oldest that is not served goes.
void Server::MakeRoom() {
  if (connections_.size() < kMostConnections) return;
  const auto victim = std::find_if(
      connections_.begin(), connections_.end(), [](const auto& each) {
        return each.second.state != Connection::State::kBroker;
      });
  if (victim != connections_.end()) End(victim->first);
}

void Server::OnSocket(uint64_t id) {
  for (int i = 0; i < kAtOnce; ++i) {
    if (!Receive(id) || replaced_by_.has_value()) return;
  }
}

// False also where nothing more is there now.
bool Server::Receive(uint64_t id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return false;
  Connection& connection = at->second;
  const bool is_broker = connection.state == Connection::State::kBroker;
  absl::StatusOr<std::optional<ipc::Packet>> packet =
      is_broker ? connection.socket.TryReceive()
                : connection.socket.TryReceiveWithoutFds();
  absl::Status handled = packet.status();
  if (handled.ok()) {
    if (!packet->has_value()) return false;
    handled = connection.state == Connection::State::kGreets
                  ? OnHello(id, **packet)
                  : OnQuestion(id, **std::move(packet));
  }
  if (handled.ok()) return true;
  if (!absl::IsUnavailable(handled)) {
    std::fprintf(stderr, "gmb-keeper: ends a connection: pid=%d: %s\n",
                 connection.peer.pid, std::string(handled.message()).c_str());
  }
  End(id);
  return false;
}

absl::Status Server::OnHello(uint64_t id, const ipc::Packet& packet) {
  Connection& connection = connections_.at(id);
  GMB_ASSIGN_OR_RETURN(const Frame frame, Decode(packet.bytes));
  if (frame.kind != Kind::kHello)
    return absl::InvalidArgumentError("the first frame is a Hello");
  GMB_ASSIGN_OR_RETURN(const Hello hello, DecodeHello(frame.body));
  // The nonce was sent after the pidfd was opened, so whoever answers it with
  // that pid is the process of the pidfd, unless that has died by now.
  if (!ipc::ConstantTimeEquals(hello.nonce, connection.nonce) ||
      packet.credentials != connection.peer ||
      !ipc::IsAlive(connection.pidfd)) {
    return absl::InvalidArgumentError(
        "the Hello is not of the process that has connected");
  }
  if (hello.oldest_version > kNewestVersion ||
      hello.newest_version < kOldestVersion) {
    return Refuse(&connection, frame.call,
                  absl::InvalidArgumentError(absl::StrCat(
                      "this keeper speaks versions ", kOldestVersion, " to ",
                      kNewestVersion,
                      " of its protocol: start one of the "
                      "broker's release, or a broker of the keeper's")));
  }
  connection.hello = frame.call;
  if (hello.role != Role::kBroker) {
    connection.state = hello.role == Role::kCommand
                           ? Connection::State::kCommand
                           : Connection::State::kSuccessor;
    return Answer(
        &connection, Kind::kWelcome, frame.call,
        Encode(Welcome{kNewestVersion, id_, shelf_.entries(), shelf_.fds()}));
  }
  if (MayServe(holder_, connection.process())) return Serve(id);
  if (!hello.wait) return Refuse(&connection, frame.call, Busy(*holder_));
  connection.state = Connection::State::kWaits;
  return Answer(&connection, Kind::kWait, frame.call,
                EncodeRefusal(Busy(*holder_)));
}

absl::Status Server::Serve(uint64_t id) {
  Connection& connection = connections_.at(id);
  if (holder_pidfd_.valid()) epoll_.Remove(holder_pidfd_.get());
  holder_pidfd_.reset();
  GMB_RETURN_IF_ERROR(
      epoll_.Add(connection.pidfd.get(),
                 {ipc::EpollTag::kPidfd, kOfHolder | ++holders_}, EPOLLIN));
  holder_ = Holder{.process = connection.process(), .connected = true};
  holder_pidfd_ = std::move(connection.pidfd);
  done_ = false;
  connection.state = Connection::State::kBroker;
  ipc::TakeFds(connection.socket.fd());
  std::fprintf(stderr, "gmb-keeper: serves a broker: pid=%d, %zu entries\n",
               connection.peer.pid, shelf_.entries());
  return Answer(
      &connection, Kind::kWelcome, connection.hello,
      Encode(Welcome{kNewestVersion, id_, shelf_.entries(), shelf_.fds()}));
}

// The last broker has died, or is done.
void Server::ServeWaiting() {
  while (true) {
    const auto next = std::find_if(
        connections_.begin(), connections_.end(), [](const auto& each) {
          return each.second.state == Connection::State::kWaits;
        });
    if (next == connections_.end()) return;
    const uint64_t id = next->first;
    if (!MayServe(holder_, next->second.process())) return;
    if (ipc::IsAlive(next->second.pidfd) && Serve(id).ok()) return;
    End(id);
  }
}

void Server::End(uint64_t id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  const bool was_broker = at->second.state == Connection::State::kBroker;
  epoll_.Remove(at->second.socket.fd());
  at->second.socket.Shutdown();
  disposer_->Dispose(std::move(at->second.socket).Release(), kDoor);
  connections_.erase(at);
  if (!was_broker || !holder_.has_value()) return;
  holder_->connected = false;
  ServeWaiting();  // it may be the same process again
}

absl::Status Server::Answer(Connection* connection, Kind kind, uint32_t call,
                            std::string body, const std::vector<int>& fds) {
  GMB_ASSIGN_OR_RETURN(const bool sent,
                       connection->socket.TrySend(
                           Encode(Frame{kind, call, std::move(body)}), fds));
  if (sent) return absl::OkStatus();
  return absl::FailedPreconditionError("it does not read its answers");
}

absl::Status Server::Refuse(Connection* connection, uint32_t call,
                            const absl::Status& why) {
  return Answer(connection, Kind::kRefused, call, EncodeRefusal(why));
}

}  // namespace gmb::keeper
