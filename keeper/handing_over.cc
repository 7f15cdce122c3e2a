// A keeper that lives is replaced: it serves nobody while another one takes
// everything, and then ends, or goes on as if nothing had been.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "ipc/pidfd.h"
#include "ipc/service_manager.h"
#include "keeper/server.h"
#include "keeper/succession.h"

namespace gmb::keeper {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t MillisecondsAgo(Time time, Time now) {
  const auto ago =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - time);
  return static_cast<uint64_t>(std::max<int64_t>(0, ago.count()));
}

Time Before(Time now, uint64_t milliseconds) {
  constexpr uint64_t kLongest = uint64_t{1000} * 3600 * 24 * 365;
  return now - std::chrono::milliseconds(std::min(milliseconds, kLongest));
}

// The next frame; DEADLINE_EXCEEDED at `until`.
absl::StatusOr<Frame> NextFrame(ipc::SeqpacketSocket* socket, Time until) {
  while (true) {
    // First, so that one that asks for ever has an end too.
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(
          "the one that was to replace this keeper took too long");
    }
    GMB_ASSIGN_OR_RETURN(const std::optional<ipc::Packet> packet,
                         socket->TryReceiveWithoutFds());
    if (packet.has_value()) return Decode(packet->bytes);
    pollfd entry{.fd = socket->fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&entry, 1, static_cast<int>(left.count()));
  }
}

std::string ControlGroup(const std::string& process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cgroup"));
  return {std::istreambuf_iterator<char>(file), {}};
}

bool InOurControlGroup(pid_t pid) {
  const std::string ours = ControlGroup("self");
  return !ours.empty() && ControlGroup(absl::StrCat(pid)) == ours;
}

// To a manager that does not know who is in this process's place, its end is
// that of the service, and of every process of it.
absl::Status MayFollow(const ipc::ServiceManager& manager, pid_t pid,
                       const Frame& frame) {
  GMB_ASSIGN_OR_RETURN(const bool managed, DecodeHandOver(frame.body));
  if (!manager.present()) return absl::OkStatus();
  if (!InOurControlGroup(pid)) {
    return absl::FailedPreconditionError(
        "a service manager runs this keeper, and would start another one: have "
        "it replaced by systemctl reload of its unit");
  }
  if (managed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a service manager runs this keeper, and has not told the next one where "
      "it listens (NOTIFY_SOCKET): put NotifyAccess=exec into the unit, and "
      "have it replaced by systemctl reload");
}

// Again until then: a manager may be busy, or begin anew itself.
absl::Status TellMainProcess(const ipc::ServiceManager& manager, pid_t pid,
                             Time until) {
  constexpr int kPauseMs = 20;
  while (true) {
    const absl::Status told = manager.Say(
        absl::StrCat("MAINPID=", pid), absl::FromChrono(until - Clock::now()));
    if (told.ok()) return told;
    if (Clock::now() >= until) {
      return absl::FailedPreconditionError(
          absl::StrCat("not replaced, for its service manager would not know: ",
                       told.message()));
    }
    (void)::poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace

absl::Status Server::OnHandOver(uint64_t id, const Frame& frame) {
  Connection& successor = connections_.at(id);
  const bool waits = std::any_of(
      connections_.begin(), connections_.end(), [](const auto& each) {
        return each.second.state == Connection::State::kWaits;
      });
  const absl::Status may =
      MayFollow(options_.manager, successor.peer.pid, frame);
  if (!may.ok()) return Refuse(&successor, frame.call, may);
  if (waits) {
    return Refuse(&successor, frame.call,
                  absl::FailedPreconditionError(
                      "a broker waits for the death of the last one: try again "
                      "when it is served"));
  }
  GMB_RETURN_IF_ERROR(Answer(&successor, Kind::kOk, frame.call, ""));
  const absl::Status given = GiveAway(&successor);
  if (given.ok()) {
    std::fprintf(stderr, "gmb-keeper: replaced by pid %d, which has all\n",
                 successor.peer.pid);
    replaced_by_ = successor.peer.pid;
    return given;
  }
  std::fprintf(stderr,
               "gmb-keeper: goes on: pid %d, uid %u, asked for copies of all "
               "that is kept, and has not taken this keeper's place\n",
               successor.peer.pid, successor.peer.uid);
  // Before it hangs up: silence would be taken for its death. ABORTED: it may
  // try again.
  (void)Refuse(&successor, 0,
               absl::IsFailedPrecondition(given)
                   ? given
                   : absl::AbortedError(given.message()));
  return given;
}

// Nothing else is looked at meanwhile: what is kept stays as it is.
absl::Status Server::GiveAway(Connection* successor) {
  const Time until = Clock::now() + options_.hand_over;
  bool told_all = false;
  while (true) {
    GMB_ASSIGN_OR_RETURN(const Frame frame,
                         NextFrame(&successor->socket, until));
    if (frame.kind == Kind::kFetch) {
      GMB_RETURN_IF_ERROR(OnFetch(successor, frame));
    } else if (frame.kind == Kind::kTake) {
      GMB_RETURN_IF_ERROR(LeaveEstate(successor, frame));
      told_all = true;
    } else if (frame.kind == Kind::kTaken && told_all) {
      return Confirm(successor, frame, until);
    } else {
      return absl::InvalidArgumentError("not a successor's question");
    }
  }
}

// The manager hears of it first: told later, it would end both where this one
// dies before.
absl::Status Server::Confirm(Connection* successor, const Frame& frame,
                             Time until) {
  if (!ipc::IsAlive(successor->pidfd))
    return absl::UnavailableError("the one that replaces this has died");
  GMB_RETURN_IF_ERROR(
      TellMainProcess(options_.manager, successor->peer.pid, until));
  const absl::Status given = Answer(successor, Kind::kOk, frame.call, "");
  if (!given.ok()) {
    const absl::Status told =
        TellMainProcess(options_.manager, ::getpid(), until);
    if (!told.ok()) {
      std::fprintf(stderr, "gmb-keeper: %s\n",
                   std::string(told.message()).c_str());
    }
  }
  return given;
}

absl::Status Server::LeaveEstate(Connection* successor, const Frame& frame) {
  const Time now = Clock::now();
  Estate estate{.keeper_id = id_,
                .entries = shelf_.entries(),
                .last_order = shelf_.last_order(),
                .holders = holders_,
                .broker = MakeStatus().broker,
                .broker_pid = holder_.has_value() ? holder_->process.pid : 0,
                .broker_died_ms = MillisecondsAgo(holder_died_, now),
                .last_peer_died_ms = MillisecondsAgo(last_peer_died_, now)};
  std::vector<int> fds = {place_.directory(), listener_.fd()};
  if (holder_.has_value() && !holder_->dead) fds.push_back(holder_pidfd_.get());
  for (const auto& [id, connection] : connections_) {
    if (connection.state == Connection::State::kBroker)
      fds.push_back(connection.socket.fd());
  }
  return Answer(successor, Kind::kEstate, frame.call, Encode(estate), fds);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Inherit(
    KeeperPlace place, const ServerOptions& options, int stop,
    Inheritance inheritance) {
  GMB_RETURN_IF_ERROR(place.TakeLock(std::move(inheritance.directory)));
  ipc::Listener listener =
      ipc::Listener::Borrow(std::move(inheritance.listener), place.socket());
  GMB_ASSIGN_OR_RETURN(std::unique_ptr<Server> server,
                       Make(std::move(place), options, std::move(listener),
                            stop, inheritance.estate.keeper_id));
  GMB_RETURN_IF_ERROR(server->TakeOver(std::move(inheritance)));
  return server;
}

absl::Status Server::TakeOver(Inheritance inheritance) {
  const Estate& estate = inheritance.estate;
  const Time now = Clock::now();
  holders_ = estate.holders;
  holder_died_ = Before(now, estate.broker_died_ms);
  last_peer_died_ = Before(now, estate.last_peer_died_ms);
  shelf_.Inherit(std::move(inheritance.entries), estate.last_order);
  for (const auto& [order, entry] : shelf_.all()) {
    if (!entry.head.peer.has_value()) continue;
    const base::UniqueFd& pidfd = entry.fds[*entry.head.peer];
    if (!ipc::IsAlive(pidfd)) {
      last_peer_died_ = now;  // perhaps after the other one's last look
      continue;
    }
    GMB_RETURN_IF_ERROR(
        epoll_.Add(pidfd.get(), {ipc::EpollTag::kPidfd, order}, POLLIN));
    living_.emplace(order, pidfd.get());
  }
  if (estate.broker == KeeperStatus::Broker::kNone) return absl::OkStatus();
  holder_ = Holder{.process = {.pid = estate.broker_pid},
                   .connected = inheritance.broker.valid(),
                   .dead = !inheritance.broker_pidfd.valid()};
  if (holder_->dead) return absl::OkStatus();
  holder_pidfd_ = std::move(inheritance.broker_pidfd);
  holder_->process.number = ipc::ProcessNumber(holder_pidfd_);
  GMB_RETURN_IF_ERROR(epoll_.Add(holder_pidfd_.get(),
                                 {ipc::EpollTag::kPidfd, kOfHolder | holders_},
                                 POLLIN));
  if (!holder_->connected) return absl::OkStatus();
  Connection broker(std::move(inheritance.broker));
  GMB_ASSIGN_OR_RETURN(broker.peer, broker.socket.peer());
  broker.state = Connection::State::kBroker;
  GMB_RETURN_IF_ERROR(epoll_.Add(broker.socket.fd(),
                                 {ipc::EpollTag::kSocket, ++last_connection_},
                                 POLLIN | POLLRDHUP));
  connections_.emplace(last_connection_, std::move(broker));
  return absl::OkStatus();
}

}  // namespace gmb::keeper
