#ifndef GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_
#define GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"

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
// on, and acknowledges them. Thread-safe; it has no thread of its own. Calls
// that wait read here (Seats), and the session's thread while none does.
class HandleChannel {
 public:
  // `sink` outlives it.
  HandleChannel(ipc::SeqpacketSocket socket, SlabSink* sink);
  HandleChannel(const HandleChannel&) = delete;
  HandleChannel& operator=(const HandleChannel&) = delete;
  ~HandleChannel() = default;

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
  // One thread receives at a time, so that frames are taken in their order.
  base::Mutex mu_;
  uint64_t last_frame_id_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_HANDLE_CHANNEL_H_
