#ifndef GMB_BROKER_GATEWAY_RELAY_H_
#define GMB_BROKER_GATEWAY_RELAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/gateway/frame_guard.h"
#include "ipc/unique_fd.h"

namespace gmb::broker {

// One tenant's connection between the client and gRPC. Bytes pass both ways as
// they come; those of the client are judged first (FrameGuard), and fds that it
// sends never get further than its own socket.
//
// Holds at most kMaxBuffered bytes for each side. While a client does not read,
// nothing more is read from it, so that gRPC has nothing more to answer.
//
// Used by one thread.
class Relay {
 public:
  using Time = FrameGuard::Time;
  static constexpr size_t kMaxBuffered = size_t{16} * 1024;

  // Both sockets are non-blocking Unix streams.
  Relay(ipc::UniqueFd client, ipc::UniqueFd grpc_end);

  // Moves what can be moved, after epoll said `events` of one end. OK: it goes
  // on. CANCELLED: one side has hung up, and all that it said has been passed
  // on. Another error: what the client did.
  [[nodiscard]] absl::Status OnClientReady(uint32_t events, Time now);
  [[nodiscard]] absl::Status OnGrpcReady(uint32_t events);

  // What epoll should wait for; 0: for nothing, not even a hang-up.
  [[nodiscard]] uint32_t client_events() const;
  [[nodiscard]] uint32_t grpc_events() const;

  [[nodiscard]] int client_fd() const { return client_.get(); }
  [[nodiscard]] int grpc_fd() const { return grpc_.get(); }
  // To be closed where nobody waits (ipc::FdDisposer).
  [[nodiscard]] ipc::UniqueFd ReleaseClient() { return std::move(client_); }

 private:
  // Bytes that one socket has said and the other has no room for.
  class Unsent {
   public:
    [[nodiscard]] bool empty() const { return from_ == bytes_.size(); }
    // Sends these after those before; keeps what does not fit. CANCELLED: the
    // receiver is gone.
    [[nodiscard]] absl::Status Send(int to, absl::string_view bytes);
    [[nodiscard]] absl::Status Flush(int to);

   private:
    std::string bytes_;
    size_t from_ = 0;
  };

  ipc::UniqueFd client_;
  ipc::UniqueFd grpc_;
  const bool client_sends_no_fds_;  // because the kernel refuses them
  FrameGuard guard_;
  Unsent to_grpc_;
  Unsent to_client_;
  bool grpc_reads_ = true;     // not once it has closed; its last words follow
  bool grpc_is_over_ = false;  // what is left for the client is flushed
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_RELAY_H_
