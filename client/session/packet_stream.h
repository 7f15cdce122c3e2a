#ifndef GMB_CLIENT_SESSION_PACKET_STREAM_H_
#define GMB_CLIENT_SESSION_PACKET_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/session/session_wait.h"
#include "client/session/stream.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"

namespace gmb::internal {

// A stream of packets, on a connection of its own to the handle socket
// (docs/protocol.md, section 6). It has no thread: those that wait at the
// session's sockets receive.
class PacketStream final : public Stream {
 public:
  // `socket` is connected, and nothing is sent yet. `wait` is where the
  // session's sockets are waited for.
  PacketStream(ipc::SeqpacketSocket socket, const std::string& token,
               StreamOwner* owner, SessionWait* wait);

  void Start() override;
  void Poke() override ABSL_LOCKS_EXCLUDED(write_mu_);
  void Cancel() override ABSL_LOCKS_EXCLUDED(write_mu_);
  void Receive(uint64_t reader) override ABSL_LOCKS_EXCLUDED(read_mu_);

 private:
  [[nodiscard]] absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(read_mu_);
  [[nodiscard]] bool IsCancelled() ABSL_LOCKS_EXCLUDED(write_mu_);
  void Finish(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(read_mu_);
  void OnFrame(v1::BrokerFrame frame, uint64_t reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(read_mu_);
  // Writes what there was no room for.
  void WriteRest() ABSL_LOCKS_EXCLUDED(write_mu_);
  // False: nothing more can be written now.
  [[nodiscard]] bool Write(const std::string& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);

  const std::string opening_;  // the first frame
  StreamOwner& owner_;
  SessionWait& wait_;
  ipc::SeqpacketSocket socket_;

  // One thread receives at a time, so that messages are taken in their order.
  base::Mutex read_mu_;
  bool started_ ABSL_GUARDED_BY(read_mu_) = false;
  bool ended_ ABSL_GUARDED_BY(read_mu_) = false;

  base::Mutex write_mu_ ABSL_ACQUIRED_AFTER(read_mu_);
  bool open_ ABSL_GUARDED_BY(write_mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(write_mu_) = false;
  std::string unsent_ ABSL_GUARDED_BY(write_mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_PACKET_STREAM_H_
