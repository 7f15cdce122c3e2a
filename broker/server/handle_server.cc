// The handle sockets' thread: events, news of other threads, and time.
#include "broker/server/handle_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using Clock = std::chrono::steady_clock;

// A part of the time that a peer has for an acknowledgement: none has much more.
Clock::duration SweepInterval(absl::Duration peer_timeout) {
  return absl::ToChronoNanoseconds(
      std::min(absl::Seconds(1), peer_timeout / 4));
}

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
      connections_(&epoll_),
      pending_(options.max_pending_greetings),
      sweep_(SweepInterval(options.peer_timeout)),
      starts_({.calls = &calls_,
               .in_flight = in_flight_,
               .news = news_,
               .connections = &connections_,
               .unread = &unread_,
               .sweep = &sweep_}) {}

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
    events.resize(64 + 2 * connections_.all().size());
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
  while (!connections_.all().empty())
    End(connections_.all().begin()->first, "the broker stops");
}

int HandleServer::WaitMilliseconds() const {
  return ipc::MillisecondsUntil(
      ipc::Earliest({pending_.NextDeadline(), sweep_.next(),
                     acceptor_.wakes_at(), connections_.NextDeath()}));
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
  for (const uint64_t id : connections_.Outlived(now)) End(id, kDisconnected);
  if (sweep_.IsDue(now)) Sweep(now);
}

void HandleServer::OnNews() {
  const SenderNews::Batch news = news_->Take();
  TakeAdopted();
  for (const uint64_t id : news.full) {
    if (connections_.Find(id) != nullptr) WatchRoom(id, true);
  }
  for (const uint64_t id : news.crowded) {
    if (HandleConnection* const connection = connections_.Find(id))
      connection->crowded = true;
  }
  if (!news.frame_sent) return;
  // Not at once: nearly always its acknowledgement comes first.
  if (news.crowded.empty()) {
    sweep_.SetSoon();
  } else {
    sweep_.SetNow();
  }
}

// Looks for peers that owe an acknowledgement for too long, and for fds that
// are left unread; comes again as long as there are any.
void HandleServer::Sweep(Time now) {
  news_->ForgetFrameSent();
  std::map<uint64_t, std::string> late;
  bool waiting = unread_.Look(connections_);
  for (const auto& [id, connection] : connections_.all()) {
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
  sweep_.Done(waiting);
}

}  // namespace gmb::broker
