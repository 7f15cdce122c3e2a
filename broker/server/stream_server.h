#ifndef GMB_BROKER_SERVER_STREAM_SERVER_H_
#define GMB_BROKER_SERVER_STREAM_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "broker/core/core.h"
#include "broker/machine/peer.h"
#include "broker/server/packet_stream.h"
#include "broker/server/request_pace.h"
#include "ipc/epoll_set.h"
#include "ipc/wakeup.h"

namespace gmb::broker {

// All streams that come as packets. One thread reads them in turn, some
// messages of each, and never blocks on a peer. Thread-safe.
class StreamServer {
 public:
  // Both must outlive it. `pace`: of tenants' requests, by whatever way.
  static absl::StatusOr<std::unique_ptr<StreamServer>> Start(Core* core,
                                                             RequestPace* pace);
  // Hangs up on all. Sessions live on.
  ~StreamServer();
  StreamServer(const StreamServer&) = delete;
  StreamServer& operator=(const StreamServer&) = delete;

  // Serves the connection as the stream of the caller's session, in place of
  // the one it has. An error says why not; the connection stays the caller's.
  [[nodiscard]] absl::Status Open(StreamConnection connection,
                                  const Caller& caller);

 private:
  using Time = PacketStream::Time;

  StreamServer(Core* core, RequestPace* pace, ipc::EpollSet epoll,
               ipc::Wakeup stop);

  void Run();
  void OnEvent(const epoll_event& event);
  void OnTime(Time now);
  // Keeps it if it goes on, or lets it go.
  void After(uint64_t id, const std::shared_ptr<PacketStream>& stream,
             bool goes_on);

  Core* const core_;
  RequestPace* const pace_;
  const std::shared_ptr<const ipc::EpollSet> epoll_;
  ipc::Wakeup stop_;
  std::atomic<bool> stopping_ = false;

  base::Mutex mu_;
  std::map<uint64_t, std::shared_ptr<PacketStream>> streams_
      ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;

  // The server's thread alone.
  std::multimap<Time, uint64_t> resting_;

  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_STREAM_SERVER_H_
