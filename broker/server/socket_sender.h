#ifndef GMB_BROKER_SERVER_SOCKET_SENDER_H_
#define GMB_BROKER_SERVER_SOCKET_SENDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "broker/core/outbox.h"
#include "broker/server/fds_in_flight.h"
#include "ipc/seqpacket.h"
#include "ipc/wakeup.h"

namespace gmb::broker {

// News of other threads for the handle server's thread. Thread-safe.
class SenderNews {
 public:
  struct Batch {
    std::vector<uint64_t> full;  // connections whose socket had no room
    // Connections that may have no more fds in flight now.
    std::vector<uint64_t> crowded;
    bool frame_sent = false;  // some peer owes an acknowledgement
  };

  explicit SenderNews(ipc::Wakeup wakeup) : wakeup_(std::move(wakeup)) {}

  void Full(uint64_t connection);
  void Crowded(uint64_t connection);
  // Wakes the server's thread once until ForgetFrameSent: grants are frequent,
  // and it looks at all sessions when it looks.
  void FrameSent();

  // All but frame_sent is told once.
  [[nodiscard]] Batch Take();
  void ForgetFrameSent();
  void Wake() { wakeup_.Notify(); }
  [[nodiscard]] int fd() const { return wakeup_.fd(); }

 private:
  void Push(std::vector<uint64_t> Batch::*list, uint64_t connection);

  ipc::Wakeup wakeup_;
  base::Mutex mu_;
  Batch batch_ ABSL_GUARDED_BY(mu_);
};

// Sends a session's slab frames on its handle socket, from any thread. Owned by
// the session's outbox alone: when the outbox lets it go, the socket is shut
// down, and the handle server sees that as it sees any hang-up.
class SocketSender : public FrameSender {
 public:
  SocketSender(uint64_t connection,
               std::shared_ptr<ipc::SeqpacketSocket> socket,
               std::shared_ptr<UnreadFds> unread,
               std::shared_ptr<SenderNews> news);
  ~SocketSender() override;
  SocketSender(const SocketSender&) = delete;
  SocketSender& operator=(const SocketSender&) = delete;

  absl::StatusOr<bool> TrySend(const std::string& frame,
                               absl::Span<const int> fds) override;
  void Hangup() override;

 private:
  const uint64_t connection_;
  const std::shared_ptr<ipc::SeqpacketSocket> socket_;
  const std::shared_ptr<UnreadFds> unread_;
  const std::shared_ptr<SenderNews> news_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SOCKET_SENDER_H_
