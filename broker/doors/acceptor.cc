// Takes connections from the listening sockets of all directories.
#include "broker/doors/acceptor.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/foreign_fds.h"

namespace gmb::broker {
namespace {

// How long nobody is let in while there is no fd.
constexpr std::chrono::milliseconds kPause{100};
// How long a listener rests that came too fast, or is crowded.
constexpr std::chrono::milliseconds kRest{10};

base::UniqueFd OpenReserve() {
  return base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Acceptor::Acceptor(const ipc::EpollSet* epoll, ipc::SocketType type,
                   ipc::FdDisposer* disposer, const AcceptPace& pace)
    : epoll_(epoll),
      type_(type),
      disposer_(disposer),
      pace_(pace),
      reserve_(OpenReserve()) {}

Acceptor::~Acceptor() {
  for (auto& [id, listener] : listeners_) Close(std::move(listener));
}

void Acceptor::Close(Listener listener) const {
  epoll_->Remove(listener.socket.fd());
  disposer_->Dispose(std::move(listener.socket).Close(), NameOf(listener.door));
}

absl::Status Acceptor::Watch(uint64_t id, const Listener& listener) const {
  return epoll_->Add(listener.socket.fd(), {ipc::EpollTag::kListener, id},
                     EPOLLIN);
}

absl::Status Acceptor::Add(const std::string& path, mode_t mode, Door door) {
  absl::StatusOr<ipc::Listener> socket =
      ipc::Listener::Listen(path, mode, type_);
  if (!socket.ok()) return socket.status();
  Listener listener{*std::move(socket), std::move(door),
                    TokenBucket(pace_.at_once, pace_.a_second)};
  base::MutexLock lock(&mu_);
  const uint64_t id = next_id_++;
  if (!paused_until_.has_value()) {
    const absl::Status watched = Watch(id, listener);
    if (!watched.ok()) return watched;
  }
  listeners_.emplace(id, std::move(listener));
  return absl::OkStatus();
}

absl::Status Acceptor::Remove(const std::string& path) {
  base::MutexLock lock(&mu_);
  const auto found = std::find_if(
      listeners_.begin(), listeners_.end(),
      [&](const auto& entry) { return entry.second.socket.path() == path; });
  if (found == listeners_.end()) {
    return absl::NotFoundError(absl::StrCat("no socket is served at ", path));
  }
  Close(std::move(found->second));
  listeners_.erase(found);
  return absl::OkStatus();
}

std::vector<Accepted> Acceptor::Accept(uint64_t id, Time now) {
  std::vector<Accepted> accepted;
  base::MutexLock lock(&mu_);
  const auto found = listeners_.find(id);
  if (found == listeners_.end()) return accepted;
  Listener& listener = found->second;
  if (disposer_->IsCrowded(NameOf(listener.door))) {
    Rest(&listener, now);
    return accepted;
  }
  while (accepted.size() < kBatch) {
    if (!listener.pace.Take(now)) {
      Rest(&listener, now);
      break;
    }
    absl::StatusOr<std::optional<base::UniqueFd>> socket =
        listener.socket.TryAccept();
    if (!socket.ok()) {
      TurnAway(&listener, now);
      break;
    }
    if (!socket->has_value()) {
      listener.pace.Earn(1);  // nobody was there to take it
      break;
    }
    accepted.push_back({*std::move(*socket), id, listener.door});
  }
  return accepted;
}

void Acceptor::TurnAway(Listener* listener, Time now) {
  reserve_.reset();
  // Accepted and closed at once: the peer sees a hang-up.
  absl::StatusOr<std::optional<base::UniqueFd>> peer =
      listener->socket.TryAccept();
  if (peer.ok() && peer->has_value() &&
      !ipc::RefusesFds(listener->socket.fd())) {
    // Its fd is free again soon.
    disposer_->Dispose(*std::move(*peer), NameOf(listener->door));
  }
  const bool turned_away = peer.ok();
  peer = std::nullopt;
  reserve_ = OpenReserve();
  if (!turned_away || !reserve_.valid()) Pause(now);
}

void Acceptor::Rest(Listener* listener, Time now) {
  epoll_->Remove(listener->socket.fd());
  listener->rests_until = now + kRest;
}

void Acceptor::Pause(Time now) {
  paused_until_ = now + kPause;
  for (const auto& [id, other] : listeners_) epoll_->Remove(other.socket.fd());
}

std::optional<Acceptor::Time> Acceptor::wakes_at() const {
  base::MutexLock lock(&mu_);
  if (paused_until_.has_value()) return paused_until_;
  std::optional<Time> first;
  for (const auto& [id, listener] : listeners_) {
    if (listener.rests_until.has_value() &&
        (!first.has_value() || *listener.rests_until < *first)) {
      first = listener.rests_until;
    }
  }
  return first;
}

void Acceptor::OnTime(Time now) {
  base::MutexLock lock(&mu_);
  if (paused_until_.has_value()) {
    if (*paused_until_ <= now) Resume(now);
    return;
  }
  for (auto& [id, listener] : listeners_) {
    if (!listener.rests_until.has_value() || *listener.rests_until > now)
      continue;
    if (Watch(id, listener).ok()) {
      listener.rests_until.reset();
    } else {
      listener.rests_until = now + kRest;
    }
  }
}

void Acceptor::Resume(Time now) {
  paused_until_.reset();
  if (!reserve_.valid()) reserve_ = OpenReserve();
  for (auto& [id, listener] : listeners_) {
    listener.rests_until.reset();
    if (!Watch(id, listener).ok()) return Pause(now);
  }
}

}  // namespace gmb::broker
