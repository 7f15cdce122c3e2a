// The keeper's loop, and what it does when processes die and time passes.
#include "keeper/server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/status_macros.h"
#include "ipc/random.h"

namespace gmb::keeper {
namespace {

using Clock = std::chrono::steady_clock;
using ipc::EpollTag;

// A wait that takes so much longer: this process was stopped, or frozen.
constexpr std::chrono::milliseconds kHeldUp{500};
// The time that a scheduler takes. One that comes later than that to give back
// was held up as well, whatever it did meanwhile.
constexpr std::chrono::milliseconds kLate{100};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    KeeperPlace place, const ServerOptions& options, int stop) {
  GMB_RETURN_IF_ERROR(place.Lock());
  GMB_ASSIGN_OR_RETURN(std::string id, ipc::RandomToken(kKeeperIdBytes));
  GMB_ASSIGN_OR_RETURN(
      ipc::Listener listener,
      ipc::Listener::Listen(place.socket(), 0600, ipc::SocketType::kSeqpacket));
  return Make(std::move(place), options, std::move(listener), stop,
              std::move(id));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Make(
    KeeperPlace place, const ServerOptions& options, ipc::Listener listener,
    int stop, std::string id) {
  GMB_ASSIGN_OR_RETURN(auto disposer, ipc::FdDisposer::Start());
  GMB_ASSIGN_OR_RETURN(ipc::EpollSet epoll, ipc::EpollSet::Create());
  GMB_RETURN_IF_ERROR(epoll.Add(stop, {EpollTag::kNews, 0}, EPOLLIN));
  GMB_RETURN_IF_ERROR(
      epoll.Add(listener.fd(), {EpollTag::kListener, 0}, EPOLLIN));
  return std::unique_ptr<Server>(
      new Server(std::move(place), options, std::move(listener),
                 std::move(epoll), std::move(disposer), std::move(id)));
}

Server::Server(KeeperPlace place, const ServerOptions& options,
               ipc::Listener listener, ipc::EpollSet epoll,
               std::unique_ptr<ipc::FdDisposer> disposer, std::string id)
    : place_(std::move(place)),
      options_(options),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      disposer_(std::move(disposer)),
      id_(std::move(id)),
      closer_(disposer_.get()),
      shelf_(options.limits) {}

absl::Status Server::Run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int wait_ms = WaitMilliseconds();
    const Time asked_at = Clock::now();
    const int ready = ::epoll_wait(epoll_.fd(), events.data(),
                                   static_cast<int>(events.size()), wait_ms);
    const Time waited_until = Clock::now();
    if (wait_ms >= 0 &&
        waited_until - asked_at > std::chrono::milliseconds(wait_ms) + kHeldUp)
      BeginTimesAnew(waited_until);
    if (ready < 0 && errno != EINTR)
      return absl::ErrnoToStatus(errno, "epoll_wait");
    for (int i = 0; i < ready; ++i) {
      const EpollTag tag = EpollTag::Unpack(events[i].data.u64);
      switch (tag.kind) {
        case EpollTag::kNews:
          return absl::OkStatus();
        case EpollTag::kListener:
          OnListener();
          break;
        case EpollTag::kSocket:
          OnSocket(tag.id);
          if (replaced_by_.has_value()) return absl::OkStatus();
          break;
        case EpollTag::kPidfd:
          OnProcess(tag.id);
          break;
      }
    }
    OnTime(Clock::now(), asked_at);
    if (IsOver(Clock::now())) return absl::OkStatus();
  }
}

int Server::WaitMilliseconds() const {
  std::optional<Time> next =
      ipc::Earliest({GivesBack(), NobodyComes(), listens_again_});
  for (const auto& [id, connection] : connections_) {
    if (connection.state == Connection::State::kGreets)
      next = ipc::Earliest({next, connection.greets_by});
  }
  return ipc::MillisecondsUntil(next);
}

std::optional<Time> Server::GivesBack() const {
  if (!holder_.has_value() || !holder_->dead) return std::nullopt;
  std::optional<Time> at =
      GivesBackAt(options_.life, {.broker_died = holder_died_,
                                  .living_peers = living_.size(),
                                  .last_peer_died = last_peer_died_});
  if (!at.has_value()) return at;
  const Time due = std::max(*at, respite_);
  at = due;
  // A peer that has just come may be the next broker; nobody puts it off for
  // ever.
  for (const auto& [id, connection] : connections_) {
    if (connection.state == Connection::State::kGreets)
      at = std::max(*at, std::min(connection.greets_by, due + kGreetingTime));
  }
  return at;
}

std::optional<Time> Server::NobodyComes() const {
  const auto wait = options_.life.abandon_after;
  if (!options_.once || holder_.has_value() || wait.count() == 0)
    return std::nullopt;
  return std::max(started_, holder_died_) + wait;
}

// One that has given all back because of its times listens on: a broker without
// sessions is upgraded too, and its next one takes a while.
bool Server::IsOver(Time now) const {
  if (!options_.once || holder_.has_value()) return false;
  const std::optional<Time> nobody = NobodyComes();
  return done_ || (nobody.has_value() && *nobody <= now);
}

void Server::OnTime(Time now, Time looked_at) {
  std::vector<uint64_t> late;
  for (const auto& [id, connection] : connections_) {
    if (connection.state == Connection::State::kGreets &&
        connection.greets_by <= now) {
      late.push_back(id);
    }
  }
  for (const uint64_t id : late) End(id);
  if (listens_again_.has_value() && *listens_again_ <= now) Listen(true);
  const std::optional<Time> gives_back = GivesBack();
  // Not before a look, once it is over, at who has come: a wait that a signal or
  // its end has cut short says nothing of that.
  if (!gives_back.has_value() || *gives_back > looked_at) return;
  // A broker could not be heard until now: it gets the time of a greeting.
  if (now - *gives_back > kLate) {
    respite_ = now + kGreetingTime;
    return;
  }
  GiveAllBack("no broker came");
}

// This process could serve nobody while it was held up, so that time counts
// against nobody: what it waits for has its whole time once more.
void Server::BeginTimesAnew(Time now) {
  std::fprintf(stderr, "gmb-keeper: it was held up: its times begin anew\n");
  holder_died_ = now;
  for (auto& [id, connection] : connections_)
    connection.greets_by = std::max(connection.greets_by, now + kGreetingTime);
}

// Of a broker, or of the peer of an entry.
void Server::OnProcess(uint64_t order) {
  if ((order & kOfHolder) != 0) {
    // An event of the one before it may come later than the next broker.
    if (holder_pidfd_.valid() && order == (kOfHolder | holders_))
      OnBrokerDeath();
    return;
  }
  const auto at = living_.find(order);
  if (at == living_.end()) return;
  epoll_.Remove(at->second);
  living_.erase(at);
  last_peer_died_ = Clock::now();
}

void Server::OnBrokerDeath() {
  if (!holder_.has_value() || holder_->dead) return;
  epoll_.Remove(holder_pidfd_.get());
  holder_pidfd_.reset();
  std::fprintf(stderr,
               "gmb-keeper: the broker has died: pid=%d; %zu entries wait for "
               "the next one\n",
               holder_->process.pid, shelf_.entries());
  holder_->dead = true;
  holder_died_ = Clock::now();
  // A child of the dead process may hold its connection open.
  std::vector<uint64_t> its;
  for (const auto& [id, connection] : connections_) {
    if (connection.state == Connection::State::kBroker) its.push_back(id);
  }
  for (const uint64_t id : its) End(id);
  ServeWaiting();
}

void Server::GiveAllBack(const char* why) {
  std::vector<KeptEntry> all = shelf_.TakeAll();
  if (!all.empty()) {
    std::fprintf(stderr, "gmb-keeper: gives back %zu entries: %s\n", all.size(),
                 why);
  }
  for (KeptEntry& entry : all) Discard(std::move(entry));
  if (holder_pidfd_.valid()) epoll_.Remove(holder_pidfd_.get());
  holder_pidfd_.reset();
  holder_.reset();
}

}  // namespace gmb::keeper
