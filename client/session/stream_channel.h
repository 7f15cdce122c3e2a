#ifndef GMB_CLIENT_SESSION_STREAM_CHANNEL_H_
#define GMB_CLIENT_SESSION_STREAM_CHANNEL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/session/session_wait.h"
#include "client/session/socket_dir.h"
#include "client/session/stream.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// Where a StreamChannel finds what to write. Called without the channel's lock.
class MessageSource {
 public:
  // The next message for the open stream, if there is any. On any thread,
  // possibly with the stream's lock held: do not call the channel.
  virtual std::optional<v1::ClientMessage> NextToWrite() = 0;
  // A new stream is about to open: what is unanswered is written again.
  virtual void Rewind() = 0;
  // Whether a call waits for an answer.
  virtual bool IsAwaited() = 0;

 protected:
  ~MessageSource() = default;
};

// Takes the messages that a StreamChannel brings. Called on the thread that has
// read, or gRPC's, without the channel's lock.
class MessageSink {
 public:
  // `reader`: the request whose call has read it on this thread, or 0.
  virtual void OnMessage(v1::BrokerMessage message, uint64_t reader) = 0;
  // The broker has ended the stream and will not have another: the session is
  // over. The channel is to be closed.
  virtual void OnStreamRefused(const absl::Status& why) = 0;

 protected:
  ~MessageSink() = default;
};

// A session's way to tell the broker and be told: one stream after the other,
// the next when the last broke, later each time that it breaks at once. They are
// streams of packets where the broker knows those, and gRPC's elsewhere. The session
// lives by its handle socket, so a broker that does not answer here is most
// likely being started again: it is tried often, most often while a call waits,
// each time by a connection of its own.
//
// Thread-safe. It has no thread of its own: the session's calls OpenIfDue and
// WriteIfDue, at NextDue() and whenever it is woken.
class StreamChannel final : private StreamOwner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `token` is the session's, from the greeting, as is whether the broker takes
  // streams of packets. `source`, `sink`, and `wait`, where the session's thread
  // waits, outlive it.
  StreamChannel(SocketDir dir, std::string token, bool takes_packets,
                MessageSource* source, MessageSink* sink, SessionWait* wait);
  StreamChannel(const StreamChannel&) = delete;
  StreamChannel& operator=(const StreamChannel&) = delete;
  // CloseAndWait() first. Never on gRPC's threads.
  ~StreamChannel();

  // By the session's thread alone.
  void OpenIfDue();
  void WriteIfDue();
  // When the first has something to do next, unless the thread is woken before.
  [[nodiscard]] std::optional<TimePoint> NextDue() const;

  // The source has something to write: now, or within a few milliseconds,
  // together with what comes by then. Not under a lock that the source takes.
  void Poke();
  void PokeSoon();

  // Takes a message, if one has come to the sockets. `reader`: the request whose
  // call reads on this thread, or 0.
  void Receive(uint64_t reader);

  // From now on no stream opens; the open one is cancelled. Wakes the session's
  // thread.
  void Close();
  // The same, and returns when the last stream has ended: the source and the
  // sink are not called any more.
  void CloseAndWait();

  // Of the last stream that broke; OK since the broker was heard again.
  [[nodiscard]] absl::Status error() const;
  // For messages.
  [[nodiscard]] const std::string& dir_name() const { return dir_.name(); }

 private:
  static constexpr absl::Duration kFirstBackoff = absl::Milliseconds(20);

  [[nodiscard]] bool IsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stream_ != nullptr && !stream_ended_;
  }

  // A stream whose connection failed, and that connection's channel.
  void DropBroken();
  // The next stream, not started; null: there is no connection.
  [[nodiscard]] std::shared_ptr<Stream> Connect();
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Stream>> ConnectByGrpc();
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Stream>> ConnectByPackets();
  [[nodiscard]] std::shared_ptr<Stream> stream() const;
  // When to try again. `awaited`: a call waits for it.
  void OnBreak(absl::Status why, bool awaited)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A call waits for a stream that was not to open so soon.
  void Hasten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::optional<v1::ClientMessage> NextToWrite() override;
  void OnMessage(v1::BrokerMessage message, uint64_t reader) override;
  void OnStreamEnded(absl::Status why) override;

  const SocketDir dir_;
  const std::string token_;
  MessageSource& source_;
  MessageSink& sink_;
  SessionWait& wait_;
  const bool takes_packets_;
  const double spread_;  // this part more than others it waits for a broker
  struct Service;        // gRPC's part, whose headers stay out of this one
  // Of the session's thread; null without a connection.
  std::unique_ptr<const Service> service_;

  mutable base::Mutex mu_;
  bool by_packets_ ABSL_GUARDED_BY(mu_);  // the next stream
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // The newest stream; replaced and destroyed by the session's thread and the
  // destructor, never on gRPC's threads.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mu_);
  bool stream_ended_ ABSL_GUARDED_BY(mu_) = false;
  base::CondVar stream_changed_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Duration backoff_ ABSL_GUARDED_BY(mu_) = kFirstBackoff;
  TimePoint reopen_at_ ABSL_GUARDED_BY(mu_);
  TimePoint opened_at_ ABSL_GUARDED_BY(mu_);  // when that was tried last
  TimePoint broken_at_ ABSL_GUARDED_BY(mu_);  // the last that held
  // The connection is of no use: the next stream has one of its own.
  bool reconnect_ ABSL_GUARDED_BY(mu_) = false;
  // The last stream, and not by a word of the broker.
  bool broke_in_transport_ ABSL_GUARDED_BY(mu_) = false;
  // When the session's thread writes what was left to it: its alarm.
  std::optional<TimePoint> write_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_STREAM_CHANNEL_H_
