// The thread that reads sessions' streams where they come as packets.
#include "broker/server/stream_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/status_macros.h"

namespace gmb::broker {
namespace {

// So many are looked at before the time is.
constexpr size_t kEventsATurn = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<StreamServer>> StreamServer::Start(
    Core* core, RequestPace* pace) {
  GMB_ASSIGN_OR_RETURN(ipc::EpollSet epoll, ipc::EpollSet::Create());
  GMB_ASSIGN_OR_RETURN(ipc::Wakeup stop, ipc::Wakeup::Create());
  GMB_RETURN_IF_ERROR(epoll.Add(stop.fd(), {ipc::EpollTag::kNews, 0}, EPOLLIN));
  std::unique_ptr<StreamServer> server(
      new StreamServer(core, pace, std::move(epoll), std::move(stop)));
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

StreamServer::StreamServer(Core* core, RequestPace* pace, ipc::EpollSet epoll,
                           ipc::Wakeup stop)
    : core_(core),
      pace_(pace),
      epoll_(std::make_shared<const ipc::EpollSet>(std::move(epoll))),
      stop_(std::move(stop)) {}

StreamServer::~StreamServer() {
  stopping_ = true;
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
  std::map<uint64_t, std::shared_ptr<PacketStream>> left;
  {
    base::MutexLock lock(&mu_);
    left.swap(streams_);
  }
  for (const auto& [id, stream] : left) stream->End();
}

// It is known here before it can be ready.
absl::Status StreamServer::Open(StreamConnection connection,
                                const Caller& caller) {
  uint64_t id = 0;
  {
    base::MutexLock lock(&mu_);
    id = next_id_++;
  }
  const auto stream =
      std::make_shared<PacketStream>(PacketStream::Deps{core_, pace_, epoll_},
                                     id, std::move(connection), caller);
  {
    base::MutexLock lock(&mu_);
    streams_.emplace(id, stream);
  }
  absl::Status begun = stream->Begin();
  if (begun.ok()) return begun;
  {
    base::MutexLock lock(&mu_);
    streams_.erase(id);
  }
  return begun;
}

void StreamServer::Run() {
  std::array<epoll_event, kEventsATurn> events{};
  while (!stopping_) {
    const int wait_ms = ipc::MillisecondsUntil(
        resting_.empty() ? std::nullopt
                         : std::optional(resting_.begin()->first));
    const int ready = ::epoll_wait(epoll_->fd(), events.data(),
                                   static_cast<int>(events.size()), wait_ms);
    if (ready > 0) {
      std::for_each(events.begin(), events.begin() + ready,
                    [this](const epoll_event& event) { OnEvent(event); });
    }
    OnTime(std::chrono::steady_clock::now());
  }
}

void StreamServer::OnEvent(const epoll_event& event) {
  const ipc::EpollTag tag = ipc::EpollTag::Unpack(event.data.u64);
  if (tag.kind != ipc::EpollTag::kSocket)
    return;  // stopping_ is looked at next
  std::shared_ptr<PacketStream> stream;
  {
    base::MutexLock lock(&mu_);
    const auto found = streams_.find(tag.id);
    if (found == streams_.end()) return;
    stream = found->second;
  }
  After(tag.id, stream, stream->OnEvents(event.events));
}

void StreamServer::OnTime(Time now) {
  while (!resting_.empty() && resting_.begin()->first <= now) {
    const uint64_t id = resting_.begin()->second;
    resting_.erase(resting_.begin());
    std::shared_ptr<PacketStream> stream;
    {
      base::MutexLock lock(&mu_);
      const auto found = streams_.find(id);
      if (found == streams_.end()) continue;
      stream = found->second;
    }
    After(id, stream, stream->OnRested());
  }
}

void StreamServer::After(uint64_t id,
                         const std::shared_ptr<PacketStream>& stream,
                         bool goes_on) {
  if (goes_on) {
    if (const auto rest = stream->TakeRest(); rest.has_value())
      resting_.emplace(*rest, id);
    return;
  }
  stream->End();
  base::MutexLock lock(&mu_);
  streams_.erase(id);
}

}  // namespace gmb::broker
