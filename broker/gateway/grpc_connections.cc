// Operators' gRPC connections, and the names that gRPC has for everybody's.
#include "broker/gateway/grpc_connections.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {
namespace {

// Operators come as fast as they like.
constexpr AcceptPace kAnyPace{.at_once = 1e9, .a_second = 1e9};
// Nobody has to prove anything by a time: an operator's idle connection, or a
// health check's, does no harm while there is room.
constexpr PendingConnections::Time kNever = PendingConnections::Time::max();

// gRPC names a connection that it was handed after its fd.
std::optional<int> FdOf(absl::string_view grpc_peer) {
  int fd = -1;
  if (!absl::ConsumePrefix(&grpc_peer, "fd:") ||
      !absl::SimpleAtoi(grpc_peer, &fd)) {
    return std::nullopt;
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcConnections>> GrpcConnections::Listen(
    const std::string& path, mode_t mode, ipc::FdDisposer* disposer,
    size_t max_unproved) {
  absl::StatusOr<ipc::EpollSet> epoll = ipc::EpollSet::Create();
  if (!epoll.ok()) return epoll.status();
  absl::StatusOr<ipc::Wakeup> stop = ipc::Wakeup::Create();
  if (!stop.ok()) return stop.status();
  const absl::Status watched =
      epoll->Add(stop->fd(), {ipc::EpollTag::kNews, 0}, EPOLLIN);
  if (!watched.ok()) return watched;
  std::unique_ptr<GrpcConnections> connections(new GrpcConnections(
      *std::move(epoll), *std::move(stop), disposer, max_unproved));
  const absl::Status listening =
      connections->acceptor_.Add(path, mode, {.origin = Origin::kAdmin});
  if (!listening.ok()) return listening;
  return connections;
}

GrpcConnections::GrpcConnections(ipc::EpollSet epoll, ipc::Wakeup stop,
                                 ipc::FdDisposer* disposer, size_t max_unproved)
    : disposer_(disposer),
      epoll_(std::move(epoll)),
      stop_(std::move(stop)),
      acceptor_(&epoll_, ipc::SocketType::kStream, disposer, kAnyPace),
      unproved_(max_unproved) {}

GrpcConnections::~GrpcConnections() {
  StopServing();
  for (auto& [id, connection] : connections_)
    disposer_->Dispose(std::move(connection.watch), door_);
}

void GrpcConnections::Serve(std::function<void(int)> hand_over) {
  hand_over_ = std::move(hand_over);
  {
    base::MutexLock lock(&mu_);
    serving_ = true;
  }
  thread_ = std::thread([this] { Run(); });
}

void GrpcConnections::StopServing() {
  {
    base::MutexLock lock(&mu_);
    serving_ = false;
  }
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

void GrpcConnections::Run() {
  std::array<epoll_event, 64> events{};
  const auto serving = [this] {
    base::MutexLock lock(&mu_);
    return serving_;
  };
  while (serving()) {
    const int ready = ::epoll_wait(
        epoll_.fd(), events.data(), static_cast<int>(events.size()),
        ipc::MillisecondsUntil(acceptor_.wakes_at()));
    const auto now = std::chrono::steady_clock::now();
    acceptor_.OnTime(now);
    for (int i = 0; i < ready; ++i) {
      const ipc::EpollTag tag = ipc::EpollTag::Unpack(events[i].data.u64);
      if (tag.kind == ipc::EpollTag::kSocket) Forget(tag.id);
      if (tag.kind != ipc::EpollTag::kListener) continue;
      for (Accepted& accepted : acceptor_.Accept(tag.id, now))
        Admit(std::move(accepted));
    }
  }
}

void GrpcConnections::Admit(Accepted accepted) {
  // Closed by the disposer where it cannot be had in the books.
  base::UniqueFd fd = Register(std::move(accepted));
  if (fd.valid()) hand_over_(fd.release());
}

base::UniqueFd GrpcConnections::Register(Accepted accepted) {
  Connection connection;
  connection.grpc_fd = accepted.socket.get();
  if (const auto peer = ipc::ConnectedPeer(connection.grpc_fd); peer.ok())
    connection.pid = peer->pid;
  connection.watch =
      base::UniqueFd(::fcntl(connection.grpc_fd, F_DUPFD_CLOEXEC, 0));
  if (!connection.watch.valid()) {
    disposer_->Dispose(std::move(accepted.socket), door_);
    return {};
  }
  base::MutexLock lock(&mu_);
  const uint64_t id = next_id_++;
  if (!epoll_
           .Add(connection.watch.get(), {ipc::EpollTag::kSocket, id},
                ipc::kEndEvents)
           .ok()) {
    disposer_->Dispose(std::move(accepted.socket), door_);
    return {};
  }
  by_grpc_fd_[connection.grpc_fd] = id;
  AddUnproved(id,
              connections_.emplace(id, std::move(connection)).first->second);
  return std::move(accepted.socket);
}

void GrpcConnections::AddUnproved(uint64_t id, const Connection& connection) {
  if (!connection.watch.valid()) return;  // the gateway has bounds of its own
  const std::optional<uint64_t> victim = unproved_.Add(
      id, /*listener=*/0, static_cast<uint64_t>(connection.pid), kNever);
  if (!victim.has_value()) return;
  const auto crowded_out = connections_.find(*victim);
  if (crowded_out == connections_.end()) return;
  ::shutdown(crowded_out->second.watch.get(), SHUT_RDWR);
}

uint64_t GrpcConnections::Adopt(int grpc_fd, pid_t pid,
                                std::function<void()> hang_up) {
  base::MutexLock lock(&mu_);
  const uint64_t id = next_id_++;
  by_grpc_fd_[grpc_fd] = id;
  Connection& connection = connections_[id];
  connection.hang_up = std::move(hang_up);
  connection.grpc_fd = grpc_fd;
  connection.pid = pid;
  return id;
}

void GrpcConnections::HangUp() {
  base::MutexLock lock(&mu_);
  for (const auto& [id, connection] : connections_) {
    if (connection.watch.valid()) {
      ::shutdown(connection.watch.get(), SHUT_RDWR);
    } else {
      connection.hang_up();
    }
  }
}

// Its end came, or we brought it about.
void GrpcConnections::Forget(uint64_t id) {
  base::MutexLock lock(&mu_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.watch.valid()) {
    // A peer that ended its half alone and does not read would have gRPC wait
    // for it, out of our sight.
    ::shutdown(found->second.watch.get(), SHUT_RDWR);
    // Closing a duplicate does not take the file out of the set.
    epoll_.Remove(found->second.watch.get());
    disposer_->Dispose(std::move(found->second.watch), door_);
  }
  unproved_.Remove(id);
  const auto named = by_grpc_fd_.find(found->second.grpc_fd);
  if (named != by_grpc_fd_.end() && named->second == id)
    by_grpc_fd_.erase(named);
  connections_.erase(found);
}

GrpcConnections::Proof GrpcConnections::Prove(absl::string_view grpc_peer) {
  const std::optional<int> fd = FdOf(grpc_peer);
  if (!fd.has_value()) return {};
  base::MutexLock lock(&mu_);
  const auto named = by_grpc_fd_.find(*fd);
  if (named == by_grpc_fd_.end()) return {};
  const auto found = connections_.find(named->second);
  if (found == connections_.end()) return {};
  Connection& connection = found->second;
  if (connection.proofs++ == 0) unproved_.Remove(named->second);
  return {this, named->second, connection.pid};
}

void GrpcConnections::Unprove(uint64_t id) {
  base::MutexLock lock(&mu_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (--found->second.proofs == 0) AddUnproved(id, found->second);
}

size_t GrpcConnections::open() const {
  base::MutexLock lock(&mu_);
  return connections_.size();
}

GrpcConnections::Proof::Proof(Proof&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      id_(other.id_),
      pid_(other.pid_) {}

GrpcConnections::Proof& GrpcConnections::Proof::operator=(
    Proof&& other) noexcept {
  if (this == &other) return *this;
  if (owner_ != nullptr) owner_->Unprove(id_);
  owner_ = std::exchange(other.owner_, nullptr);
  id_ = other.id_;
  pid_ = other.pid_;
  return *this;
}

GrpcConnections::Proof::~Proof() {
  if (owner_ != nullptr) owner_->Unprove(id_);
}

}  // namespace gmb::broker
