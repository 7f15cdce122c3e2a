#ifndef GMB_BROKER_CORE_OUTBOX_H_
#define GMB_BROKER_CORE_OUTBOX_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "broker/core/keeper.h"
#include "broker/core/stream_sink.h"
#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// The handle socket of one session, seen from the outbox. Thread-safe.
class FrameSender {
 public:
  virtual ~FrameSender() = default;
  // true: sent; false: the socket is full (OnSocketWritable follows).
  // An error means that the peer is gone; the sender ends the session itself.
  virtual absl::StatusOr<bool> TrySend(const std::string& frame,
                                       absl::Span<const int> fds) = 0;
  // The broker ends the session: close the socket. Must not block or call back;
  // may come after the socket is gone.
  virtual void Hangup() = 0;
};

// One packet of slab handles, ready to send.
struct SlabFrame {
  uint64_t frame_id = 0;
  std::string bytes;  // a serialized BrokerFrame
  std::vector<SharedHandle>
      handles;  // its fds; shared so that they outlive a removal
};

// All that the broker has to say to one session, in order: handles on the
// handle socket, messages on the stream. First in, first out over both sockets,
// so that no announcement overtakes its handles and no event another.
//
// Push is cheap and is called under the core's lock, which orders it; Pump
// sends what can be sent and is called after that lock is given up. At most
// one slab frame is unacknowledged and one message in flight at a time.
// Thread-safe; never calls out with its own lock held.
class Outbox {
 public:
  // A client that lets this many items pile up does not read: Push drops
  // further ones and overflowed() turns true, on which the session is ended.
  static constexpr size_t kMaxItems = 8192;
  // With more messages than that waiting, a client's requests are not read.
  static constexpr size_t kManyMessages = 256;
  // For each lease that is to move: an Evict or a Map, and its handles, now and
  // once more before it has read those.
  static constexpr size_t kItemsAMove = 4;

  // So many leases may have to move at once.
  void ExpectMoves(size_t leases);
  void Push(SlabFrame frame);
  void Push(v1::BrokerMessage message);
  void Pump();
  [[nodiscard]] bool overflowed() const;

  // The handle server's side.
  void AttachSocket(std::shared_ptr<FrameSender> sender);
  void OnSocketWritable();
  // Of a session that is adopted, before it has a socket: frames below `id` are
  // of the broker before this one, which may not have seen them acknowledged.
  void IgnoreAcksBelow(uint64_t id);
  // Such a frame: nothing here waits for its acknowledgement. Each broker before
  // this one had one frame unacknowledged at most, and so many are taken.
  [[nodiscard]] bool TakeOldAck(uint64_t frame_id);
  // False when no frame with this id is unacknowledged: the peer is lying.
  [[nodiscard]] bool OnAck(uint64_t frame_id);
  // Since when a frame has been waiting for the peer (unacknowledged, or
  // unsent because the socket is full); nullopt when none is.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point>
  WaitingForPeerSince() const;

  // The session service's side. A new stream replaces an older one, which is
  // closed; messages not yet written are dropped with the stream they were
  // meant for (their requests, repeated, are answered alike).
  void AttachStream(std::shared_ptr<StreamSink> sink);
  // False when `sink` is not the stream attached.
  bool DetachStream(const StreamSink* sink);
  [[nodiscard]] bool streaming() const;
  // So many messages wait that no more should be asked for. When one is written
  // after this, OnWriteDone is called.
  [[nodiscard]] bool crowded() const;
  void OnWriteDone(const StreamSink* sink);
  // The client asks for nothing more on this stream: it is closed once it has
  // what was answered.
  void CloseOnceWritten(const StreamSink* sink);

  // The session is over: drops everything, closes the stream, sends no more.
  void Close(const absl::Status& status);

 private:
  using Item = std::variant<SlabFrame, v1::BrokerMessage>;
  struct Work {  // one step, carried out without the lock
    std::shared_ptr<FrameSender> sender;
    std::shared_ptr<StreamSink> sink;
    Item item;
  };

  struct Progress {
    bool pumping = false;    // a thread carries items
    bool writing = false;    // to the stream
    bool asked_all = false;  // on the stream, which ends once all is written
    bool socket_full = false;
    bool closed = false;
    bool overflowed = false;
  };

  struct Acks {
    uint64_t old = 0;    // of brokers before this one, still to come
    uint64_t first = 0;  // frame of this broker
    std::optional<uint64_t> awaited;
    std::optional<std::chrono::steady_clock::time_point> waiting_since;
  };

  std::optional<Work> NextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The stream, when it is to be closed now.
  std::shared_ptr<StreamSink> WrittenLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Carry(Work work) ABSL_LOCKS_EXCLUDED(mu_);
  void DropMessagesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable base::Mutex mu_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mu_);
  size_t messages_ ABSL_GUARDED_BY(mu_) = 0;  // of the items
  size_t max_items_ ABSL_GUARDED_BY(mu_) = kMaxItems;
  std::shared_ptr<FrameSender> sender_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<StreamSink> sink_ ABSL_GUARDED_BY(mu_);
  Progress progress_ ABSL_GUARDED_BY(mu_);
  Acks acks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_OUTBOX_H_
