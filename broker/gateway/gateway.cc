// Lets tenants' connections in to gRPC, and ends those that break its bounds.
#include "broker/gateway/gateway.h"

#include <sys/socket.h>

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/gateway/grpc_system_calls.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {
namespace {

using Clock = std::chrono::steady_clock;

// How often connections are looked at whose sessions may have ended, and how
// long the last words of a session may take to its client.
constexpr std::chrono::seconds kLook{1};
constexpr std::chrono::seconds kLastWords{2};

// How soon those who connect, or call, too often are looked at again.
constexpr std::chrono::milliseconds kTooOftenPause{50};

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Create(
    const GatewayOptions& options, Admission* admission,
    GrpcConnections* connections, ipc::FdDisposer* disposer) {
  absl::StatusOr<ipc::EpollSet> epoll = ipc::EpollSet::Create();
  if (!epoll.ok()) return epoll.status();
  absl::StatusOr<ipc::Wakeup> news = ipc::Wakeup::Create();
  if (!news.ok()) return news.status();
  const absl::Status watched =
      epoll->Add(news->fd(), {ipc::EpollTag::kNews, 0}, EPOLLIN);
  if (!watched.ok()) return watched;
  return std::unique_ptr<Gateway>(new Gateway(options, admission, connections,
                                              disposer, *std::move(epoll),
                                              *std::move(news)));
}

Gateway::Gateway(const GatewayOptions& options, Admission* admission,
                 GrpcConnections* connections, ipc::FdDisposer* disposer,
                 ipc::EpollSet epoll, ipc::Wakeup news)
    : options_(options),
      admission_(admission),
      connections_(connections),
      disposer_(disposer),
      epoll_(std::move(epoll)),
      news_(std::move(news)),
      acceptor_(&epoll_, ipc::SocketType::kStream, disposer, options.pace),
      order_(options.max_waiting),
      paces_(options.tenants) {}

Gateway::~Gateway() {
  StopAccepting();
  admission_->SetOnAdd(nullptr);
  stopping_ = true;
  news_.Notify();
  if (thread_.joinable()) thread_.join();
  for (auto& [id, waiting] : waiting_)
    disposer_->Dispose(std::move(waiting.socket), NameOf(waiting.guest.first));
  for (auto& [id, passing] : passing_) {
    passing.socket->HangUp();
    passing.socket->Leave();
    connections_->Forget(passing.grpc_id);
  }
}

absl::Status Gateway::AddDoor(const std::string& path, mode_t mode,
                              const Door& door) {
  return acceptor_.Add(path, mode, door);
}

absl::Status Gateway::RemoveDoor(const std::string& path) {
  return acceptor_.Remove(path);
}

void Gateway::Serve(Calls calls) {
  calls_ = std::move(calls);
  {
    base::MutexLock lock(&accepting_mu_);
    accepting_ = true;
  }
  admission_->SetOnAdd([this] { news_.Notify(); });
  thread_ = std::thread([this] { Run(); });
}

void Gateway::StopAccepting() {
  base::MutexLock lock(&accepting_mu_);
  accepting_ = false;
}

void Gateway::Run() {
  std::array<epoll_event, 64> events{};
  while (!stopping_) {
    const int ready =
        ::epoll_wait(epoll_.fd(), events.data(),
                     static_cast<int>(events.size()), WaitMilliseconds());
    const Time now = Clock::now();
    for (int i = 0; i < ready; ++i)
      OnEvent(ipc::EpollTag::Unpack(events[i].data.u64), now);
    OnTime(now);
  }
}

int Gateway::WaitMilliseconds() const {
  return ipc::MillisecondsUntil(
      ipc::Earliest({order_.NextDeadline(), next_look_, let_in_at_,
                     try_calls_at_, acceptor_.wakes_at()}));
}

void Gateway::OnEvent(ipc::EpollTag tag, Time now) {
  if (tag.kind == ipc::EpollTag::kNews) {
    news_.Clear();
    OnReports(now);
    return LetIn(now);
  }
  if (tag.kind != ipc::EpollTag::kListener)
    return TurnAway(tag.id);  // it hung up
  for (Accepted& accepted : acceptor_.Accept(tag.id, now))
    Receive(std::move(accepted), now);
}

void Gateway::OnTime(Time now) {
  if (let_in_at_.has_value() && *let_in_at_ <= now) LetIn(now);
  for (const uint64_t id : order_.TakeExpired(now)) TurnAway(id);
  acceptor_.OnTime(now);
  if (next_look_.has_value() && *next_look_ <= now) LookForStrangers(now);
  if (try_calls_at_.has_value() && *try_calls_at_ <= now) TryWaitingCalls(now);
}

void Gateway::TryWaitingCalls(Time now) {
  std::erase_if(calls_wait_, [&](uint64_t id) {
    const auto found = passing_.find(id);
    return found == passing_.end() || !found->second.socket->TryAgain();
  });
  try_calls_at_.reset();
  if (!calls_wait_.empty()) try_calls_at_ = now + kTooOftenPause;
}

// Ends the connections of processes whose last session here has ended.
void Gateway::LookForStrangers(Time now) {
  for (auto& [id, passing] : passing_) {
    if (admission_->SessionCount(passing.guest.first, passing.guest.second) >
        0) {
      passing.stranger_since.reset();
      continue;
    }
    if (!passing.stranger_since.has_value()) passing.stranger_since = now;
    if (now - *passing.stranger_since >= kLastWords) passing.socket->HangUp();
  }
  next_look_.reset();
  if (!passing_.empty()) next_look_ = now + kLook;
}

// On a thread of gRPC.
void Gateway::Report(uint64_t id) {
  {
    base::MutexLock lock(&reports_mu_);
    reports_.push_back(id);
  }
  news_.Notify();
}

void Gateway::OnReports(Time now) {
  std::vector<uint64_t> reports;
  {
    base::MutexLock lock(&reports_mu_);
    reports.swap(reports_);
  }
  for (const uint64_t id : reports) {
    const auto found = passing_.find(id);
    if (found == passing_.end()) continue;
    Passing& passing = found->second;
    const absl::Status breach = passing.socket->breach();
    if (!breach.ok() && !std::exchange(passing.condemned, true)) {
      EndSessions(passing.guest, breach);
      passing.socket->HangUp();
    }
    if (passing.socket->closed()) {
      Forget(id, now);
    } else if (breach.ok()) {
      calls_wait_.insert(id);
      if (!try_calls_at_.has_value()) try_calls_at_ = now + kTooOftenPause;
    }
  }
}

void Gateway::EndSessions(const Guest& guest, const absl::Status& breach) {
  const std::string reason = absl::StrCat(
      "it broke the bounds of its gRPC connection: ", breach.message());
  for (const uint64_t session :
       admission_->SessionsOf(guest.first, guest.second)) {
    calls_.end_session(session, reason);
  }
}

void Gateway::Forget(uint64_t id, Time now) {
  const auto found = passing_.find(id);
  const auto count = passing_of_.find(found->second.guest);
  if (--count->second == 0) passing_of_.erase(count);
  connections_->Forget(found->second.grpc_id);
  const GuardedSocket& socket = *found->second.socket;
  paces_.CountEnd(found->second.tenant, socket.CallsOfBurst(now),
                  !socket.breach().ok(), now);
  passing_.erase(found);
}

void Gateway::Receive(Accepted accepted, Time now) {
  const absl::StatusOr<PeerProcess> process =
      ConnectedProcess(accepted.socket.get());
  const uint64_t id = next_id_++;
  const bool watched =
      process.ok() && epoll_
                          .Add(accepted.socket.get(),
                               {ipc::EpollTag::kSocket, id}, ipc::kEndEvents)
                          .ok();
  if (!watched) {
    return disposer_->Dispose(std::move(accepted.socket),
                              NameOf(accepted.door));
  }
  const Guest guest{accepted.door, *process};
  waiting_.emplace(id, Waiting{std::move(accepted.socket), guest});
  const std::optional<uint64_t> victim = order_.Add(
      id, accepted.listener, process->number, now + options_.greeting_timeout);
  if (MayPass(guest)) LetIn(now);
  if (victim.has_value()) TurnAway(*victim);
}

// Looks at all that wait: one of them may pass now.
void Gateway::LetIn(Time now) {
  let_in_at_.reset();
  std::vector<uint64_t> ready;
  for (const auto& [id, waiting] : waiting_) {
    if (MayPass(waiting.guest)) ready.push_back(id);
  }
  for (const uint64_t id : ready) {
    const auto found = waiting_.find(id);
    const Guest& guest = found->second.guest;
    if (!MayPass(guest)) continue;  // another of it came first
    if (!paces_.TakeConnect(admission_->TenantOf(guest.first, guest.second),
                            now)) {
      let_in_at_ = now + kTooOftenPause;
      continue;
    }
    Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    order_.Remove(id);
    epoll_.Remove(waiting.socket.get());
    Admit(id, std::move(waiting), now);
  }
}

bool Gateway::MayPass(const Guest& guest) const {
  const size_t sessions = admission_->SessionCount(guest.first, guest.second);
  const auto found = passing_of_.find(guest);
  const size_t open = found == passing_of_.end() ? 0 : found->second;
  if (open < sessions) return true;
  return sessions > 0 && open < sessions + 2 &&
         passing_.size() < admission_->sessions() + options_.spare_connections;
}

void Gateway::Admit(uint64_t id, Waiting waiting, Time now) {
  const int fd = waiting.socket.get();
  const absl::StatusOr<ipc::PeerCredentials> peer = ipc::ConnectedPeer(fd);
  const std::string door = NameOf(waiting.guest.first);
  const std::string tenant =
      admission_->TenantOf(waiting.guest.first, waiting.guest.second);
  auto socket = std::make_shared<GuardedSocket>(fd, paces_.CallsOf(tenant, now),
                                                disposer_, door,
                                                [this, id] { Report(id); });
  base::MutexLock lock(&accepting_mu_);
  if (!peer.ok() || !accepting_ || !GuardUntilClosed(fd, socket).ok()) {
    return disposer_->Dispose(std::move(waiting.socket), door);
  }
  ++passing_of_[waiting.guest];
  const uint64_t grpc_id =
      connections_->Adopt(fd, peer->pid, [socket] { socket->HangUp(); });
  passing_.emplace(id, Passing{.socket = std::move(socket),
                               .guest = waiting.guest,
                               .tenant = tenant,
                               .grpc_id = grpc_id});
  calls_.hand_over(waiting.socket.release());
  if (!next_look_.has_value()) next_look_ = now + kLook;
}

void Gateway::TurnAway(uint64_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  order_.Remove(id);
  epoll_.Remove(found->second.socket.get());
  ::shutdown(found->second.socket.get(), SHUT_RDWR);
  disposer_->Dispose(std::move(found->second.socket),
                     NameOf(found->second.guest.first));
  waiting_.erase(found);
}

}  // namespace gmb::broker
