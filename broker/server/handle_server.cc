// The handle sockets' thread: events, news of other threads, and time.
#include "broker/server/handle_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/handle_connection.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at what peers have read, while some tenant has no room.
constexpr std::chrono::milliseconds kLookInterval{200};

}  // namespace

absl::StatusOr<std::unique_ptr<HandleServer>> HandleServer::Start(
    const HandleServerOptions& options, SessionCalls calls,
    ipc::FdDisposer* disposer) {
  absl::StatusOr<ipc::EpollSet> epoll = ipc::EpollSet::Create();
  if (!epoll.ok()) return epoll.status();
  absl::StatusOr<ipc::Wakeup> wakeup = ipc::Wakeup::Create();
  if (!wakeup.ok()) return wakeup.status();
  auto news = std::make_shared<SenderNews>(*std::move(wakeup));
  const absl::Status watched =
      epoll->Add(news->fd(), {ipc::EpollTag::kNews, 0}, EPOLLIN);
  if (!watched.ok()) return watched;
  std::unique_ptr<HandleServer> server(new HandleServer(
      options, std::move(calls), disposer, *std::move(epoll), std::move(news)));
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

HandleServer::HandleServer(const HandleServerOptions& options,
                           SessionCalls calls, ipc::FdDisposer* disposer,
                           ipc::EpollSet epoll,
                           std::shared_ptr<SenderNews> news)
    : options_(options),
      calls_(std::move(calls)),
      disposer_(disposer),
      epoll_(std::move(epoll)),
      news_(std::move(news)),
      in_flight_(std::make_shared<FdsInFlight>(options.fds_in_flight)),
      acceptor_(&epoll_, ipc::SocketType::kSeqpacket, disposer, options.pace),
      pending_(options.max_pending_greetings) {}

HandleServer::~HandleServer() {
  stopping_ = true;
  news_->Wake();
  if (thread_.joinable()) thread_.join();
}

absl::Status HandleServer::AddListener(const std::string& path, mode_t mode,
                                       Origin origin, std::string_view tenant) {
  return acceptor_.Add(path, mode, {origin, std::string(tenant)});
}

absl::Status HandleServer::RemoveListener(const std::string& path) {
  return acceptor_.Remove(path);
}

void HandleServer::Run() {
  std::vector<epoll_event> events;
  // All that arrived before has been read. Deadlines are judged by it and not
  // by the clock: this thread may have been held up where its peers were not.
  Time read_until = Clock::now();
  while (!stopping_) {
    events.resize(64 + 2 * connections_.size());
    const int wait_ms = WaitMilliseconds();
    const Time asked_at = Clock::now();
    const int ready = ::epoll_wait(epoll_.fd(), events.data(),
                                   static_cast<int>(events.size()), wait_ms);
    for (int i = 0; i < ready; ++i) {
      OnEvent(ipc::EpollTag::Unpack(events[i].data.u64), events[i].events);
    }
    // A signal may have ended the wait before anything was looked at.
    if (ready >= 0 && ready < static_cast<int>(events.size()))
      read_until = asked_at;
    OnTime(read_until);
    acceptor_.OnTime(Clock::now());
  }
  TakeAdopted();
  while (!connections_.empty())
    End(connections_.begin()->first, "the broker stops");
}

int HandleServer::WaitMilliseconds() const {
  std::optional<Time> next = ipc::Earliest(
      {pending_.NextDeadline(), next_sweep_, acceptor_.wakes_at()});
  for (const auto& [id, deadline] : dying_) {
    if (!next.has_value() || deadline < *next) next = deadline;
  }
  return ipc::MillisecondsUntil(next);
}

void HandleServer::OnEvent(ipc::EpollTag tag, uint32_t events) {
  switch (tag.kind) {
    case ipc::EpollTag::kNews:
      OnNews();
      break;
    case ipc::EpollTag::kListener:
      OnListener(tag.id);
      break;
    case ipc::EpollTag::kSocket:
      OnSocket(tag.id, events);
      break;
    case ipc::EpollTag::kPidfd:
      OnDeath(tag.id);
      break;
  }
}

void HandleServer::OnTime(Time now) {
  for (const uint64_t id : pending_.TakeExpired(now)) {
    Refuse(id,
           proto::MakeError(
               v1::BAD_REQUEST,
               absl::StrCat("no Hello came within ",
                            absl::FormatDuration(options_.greeting_timeout))));
  }
  std::vector<uint64_t> outlived;
  for (const auto& [id, deadline] : dying_) {
    if (deadline <= now) outlived.push_back(id);
  }
  for (const uint64_t id : outlived) End(id, kDisconnected);
  if (next_sweep_.has_value() && *next_sweep_ <= now) Sweep(now);
}

void HandleServer::OnNews() {
  const SenderNews::Batch news = news_->Take();
  TakeAdopted();
  for (const uint64_t id : news.full) WaitForRoom(id);
  for (const uint64_t id : news.crowded) {
    const auto found = connections_.find(id);
    if (found != connections_.end()) found->second->crowded = true;
  }
  // Not at once: nearly always its acknowledgement comes first.
  if (news.frame_sent && !next_sweep_.has_value())
    next_sweep_ = news.crowded.empty() ? After(SweepInterval()) : Clock::now();
}

// Looks for peers that owe an acknowledgement for too long, and for fds that
// are left unread; comes again as long as there are any.
void HandleServer::Sweep(Time now) {
  news_->ForgetFrameSent();
  std::map<uint64_t, std::string> late;
  bool waiting = ForgetWhatWasRead();
  for (const auto& [id, connection] : connections_) {
    if (connection->outbox == nullptr) continue;
    const bool crowded = std::exchange(connection->crowded, false);
    if (crowded) connection->outbox->OnSocketWritable();
    const std::optional<Clock::time_point> since =
        connection->outbox->WaitingForPeerSince();
    if (!since.has_value()) continue;
    waiting = true;
    if (now - *since < absl::ToChronoNanoseconds(options_.peer_timeout))
      continue;
    late[id] = absl::StrCat(
        crowded ? "other processes left so many slabs unread that it could not "
                  "be sent its own for "
                : "it did not acknowledge its slabs within ",
        absl::FormatDuration(options_.peer_timeout));
  }
  for (const auto& [id, reason] : late) End(id, reason);
  next_sweep_.reset();
  if (waiting) next_sweep_ = After(SweepInterval());
}

bool HandleServer::MayLookAgain(Time now) const {
  return now - looked_for_read_ >= kLookInterval;
}

bool HandleServer::ForgetWhatWasRead() {
  looked_for_read_ = Clock::now();
  bool left = false;
  for (const auto& [id, connection] : connections_) {
    if (connection->unread != nullptr &&
        !connection->unread->GiveBackIfRead(connection->socket->fd())) {
      left = true;
    }
  }
  std::erase_if(left_unread_,
                [](const auto& each) { return !HasUnread(each.first->fd()); });
  return left || !left_unread_.empty();
}

}  // namespace gmb::broker
