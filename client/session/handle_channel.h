#ifndef GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_
#define GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "client/session/session_wait.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"
#include "ipc/wakeup.h"

namespace gmb::internal {

// Takes the slabs that a HandleChannel reads. Called with its lock held.
class SlabSink {
 public:
  // `reader`: the request whose call reads on this thread, or 0. An error says
  // how the broker broke the protocol.
  [[nodiscard]] virtual absl::Status OnSlabs(const v1::Slabs& slabs,
                                             std::vector<base::UniqueFd> fds,
                                             uint64_t reader) = 0;

 protected:
  ~SlabSink() = default;
};

// A greeted handle socket: reads the broker's slabs in their order, hands them
// on, and acknowledges them. Thread-safe; it has no thread of its own. Calls for
// leases wait and read here, and the session's thread while none does.
class HandleChannel {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A place to wait at the socket. Every frame wakes all who wait there, so
  // there are few. Frames wait for those who have one: leave it before anything
  // that may take long.
  class Seat {
   public:
    // Keep `channel` as long.
    explicit Seat(HandleChannel* channel);
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat();

    // Wakes the thread that waits; null: there was no place, or no fd to spare.
    [[nodiscard]] ipc::Wakeup* wakeup() {
      return wakeup_.has_value() ? &*wakeup_ : nullptr;
    }

   private:
    HandleChannel& channel_;
    std::optional<ipc::Wakeup> wakeup_;
  };

  // Both outlive it; `wait` has been given the socket.
  HandleChannel(ipc::SeqpacketSocket socket, SlabSink* sink, SessionWait* wait);
  HandleChannel(const HandleChannel&) = delete;
  HandleChannel& operator=(const HandleChannel&) = delete;
  ~HandleChannel() = default;

  // Blocks until the socket can be read, `wakeup` is notified, which is
  // cleared, or until `until`; it may return before. Whether there is something
  // to read, or the broker has hung up.
  bool Wait(ipc::Wakeup* wakeup, std::optional<TimePoint> until) const;
  // Takes a frame, if one has come: the broker sends the next when this one is
  // acknowledged. An error, which may be the broker's refusal, ends the session.
  [[nodiscard]] absl::Status Receive(uint64_t reader) ABSL_LOCKS_EXCLUDED(mu_);

  // Hangs up, so that the broker takes back what it believes we hold.
  void HangUp() const;
  // Closes what the broker has sent and nobody has read.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status OnFrame(ipc::Packet packet, uint64_t reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  SlabSink& sink_;
  ipc::SeqpacketSocket socket_;
  SessionWait& wait_;
  base::Mutex seats_mu_;
  int seats_taken_ ABSL_GUARDED_BY(seats_mu_) = 0;
  std::vector<ipc::Wakeup> spare_ ABSL_GUARDED_BY(seats_mu_);  // of seats
  // One thread receives at a time, so that frames are taken in their order.
  base::Mutex mu_;
  uint64_t last_frame_id_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_
