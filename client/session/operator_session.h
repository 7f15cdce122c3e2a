#ifndef GMB_CLIENT_SESSION_OPERATOR_SESSION_H_
#define GMB_CLIENT_SESSION_OPERATOR_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace gmb::internal {

// An operator's way to a broker: greeted on DIR/admin/handle.sock, with a
// channel for calls of the Admin service. Ends when destroyed. Movable; calls
// on the channel may be made from any thread.
class OperatorSession {
 public:
  // `socket_dir` as in ClientOptions. Blocks for at most `timeout`.
  // UNAVAILABLE, DEADLINE_EXCEEDED: no broker answers there.
  // PERMISSION_DENIED: this user may not reach the operators' socket.
  [[nodiscard]] static absl::StatusOr<OperatorSession> Open(
      const std::string& socket_dir, absl::Duration timeout);

  OperatorSession(OperatorSession&&) noexcept;
  OperatorSession& operator=(OperatorSession&&) noexcept;
  ~OperatorSession();

  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const;
  // The directory, made absolute; for messages.
  [[nodiscard]] const std::string& socket_dir() const;
  // Connects the channel, again and again where that fails. OK: a call goes out
  // at once. UNAVAILABLE: the broker has hung up. DEADLINE_EXCEEDED: it is
  // there, but its gRPC socket took no connection.
  [[nodiscard]] absl::Status AwaitChannel(absl::Time deadline) const;
  // Waits for the broker to end this session, as it does when it stops or
  // dies; false when it has not within `timeout`.
  [[nodiscard]] bool AwaitHangUp(absl::Duration timeout) const;

  // Adds the operator's token to a call.
  void Authorize(grpc::ClientContext* context) const;

  // The end of a call: OK, or a status that GetErrorDetail (gmb/error.h) reads.
  [[nodiscard]] static absl::Status ToStatus(const grpc::Status& status);

 private:
  struct Impl;
  explicit OperatorSession(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_OPERATOR_SESSION_H_
