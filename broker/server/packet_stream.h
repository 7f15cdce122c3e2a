#ifndef GMB_BROKER_SERVER_PACKET_STREAM_H_
#define GMB_BROKER_SERVER_PACKET_STREAM_H_

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "broker/core/core.h"
#include "broker/core/outbox.h"
#include "broker/core/stream_sink.h"
#include "broker/machine/peer.h"
#include "broker/server/request_pace.h"
#include "broker/server/stream_connection.h"
#include "ipc/epoll_set.h"

namespace gmb::broker {

// The stream of one session as packets on a socket of its own: what
// SessionService is for gRPC. Read by the StreamServer's thread, which owns it;
// the outbox writes from any thread. Both look for room in the same epoll set.
class PacketStream : public StreamSink,
                     public std::enable_shared_from_this<PacketStream> {
 public:
  using Time = RequestPace::Time;

  struct Deps {
    Core* core;
    RequestPace* pace;
    std::shared_ptr<const ipc::EpollSet> epoll;  // shared: outboxes keep us
  };
  PacketStream(const Deps& deps, uint64_t id, StreamConnection connection,
               const Caller& caller);

  // Takes the place of the session's stream, if it has one. An error says why
  // it may not, as the one that ends a stream.
  [[nodiscard]] absl::Status Begin();

  // By the server's thread. False: the stream is over, and to be let go.
  [[nodiscard]] bool OnEvents(uint32_t events);
  // The time of its rest is over.
  [[nodiscard]] bool OnRested();
  // When it is to be read again, because its tenant sends fast; told once.
  [[nodiscard]] std::optional<Time> TakeRest();
  // The last call. It is told nothing more.
  void End();

  bool Write(v1::BrokerMessage message) override;
  void Close(const absl::Status& status) override;

 private:
  // Messages of a stream that is over are left unread, and so are those of one
  // that waits for its client or turn.
  struct Reading {
    bool crowded = false;  // more answers wait than a client leaves that reads
    bool resting = false;
    bool asked_all = false;
    [[nodiscard]] bool on() const { return !crowded && !resting && !asked_all; }
  };

  [[nodiscard]] bool Read();
  [[nodiscard]] bool Handle(const v1::ClientMessage& message);
  [[nodiscard]] bool MayRead();
  // Its share of its tenant's pace; false: it rests.
  [[nodiscard]] bool TakeTurn();
  void OnRoom();
  // An answer is written: there may be room for more questions.
  void OnWritten(const std::shared_ptr<Outbox>& outbox);
  [[nodiscard]] absl::Status Watch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Deps deps_;
  const uint64_t id_;  // in the epoll set
  const StreamConnection connection_;
  const Caller caller_;

  // The server's thread alone.
  uint32_t let_in_ = 0;  // of its turn, not read yet
  std::optional<Time> rest_;

  base::Mutex mu_;
  std::shared_ptr<Outbox> outbox_ ABSL_GUARDED_BY(mu_);
  Reading reading_ ABSL_GUARDED_BY(mu_);
  std::string unsent_ ABSL_GUARDED_BY(mu_);  // the socket was full
  // Before the outbox was known here, to which it is to be told.
  bool written_early_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_PACKET_STREAM_H_
