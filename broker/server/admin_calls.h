#ifndef GMB_BROKER_SERVER_ADMIN_CALLS_H_
#define GMB_BROKER_SERVER_ADMIN_CALLS_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/clock.h"
#include "broker/machine/peer.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/serial_executor.h"
#include "broker/store/quota_store.h"
#include "grpcpp/support/server_callback.h"

namespace gmb::broker {

// Why a tenant's call of an operator's method fails.
[[nodiscard]] absl::Status NotOperator();

// How calls of operators are answered: whose they are is proved first, and what
// may wait is done on the operators' thread, one after the other. Work that is
// queued when it is destroyed is still done.
class AdminCalls {
 public:
  // Finishes a call, once. Its connection stays proved as long as this is kept;
  // its request and response are gone from then on.
  using Finish = std::function<void(const absl::Status&)>;

  // Both must outlive it.
  AdminCalls(const CallAuthenticator* authenticator, const Clock* clock)
      : authenticator_(authenticator), clock_(clock) {}

  // The operator who calls, or why the caller is none.
  [[nodiscard]] absl::StatusOr<AuthenticatedCall> Operator(
      grpc::CallbackServerContext* context) const;
  // Answers at once with what `report` fills in.
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context,
      const std::function<absl::Status()>& report) const;
  // Answers from the operators' thread: for what waits for the disk or the
  // driver. `change` gets a record of what the caller does now; what it is, is
  // still to be filled in.
  grpc::ServerUnaryReactor* InTurn(
      grpc::CallbackServerContext* context,
      std::function<absl::Status(const AuditRecord&)> change);
  // `begin`, on that thread, finishes the call then or later.
  grpc::ServerUnaryReactor* Begin(
      grpc::CallbackServerContext* context,
      std::function<void(const Caller&, const Finish&)> begin);

  [[nodiscard]] AuditRecord RecordOf(const Caller& caller) const;
  // Does the work on the operators' thread.
  void Post(std::function<void()> work) { operators_.Post(std::move(work)); }

 private:
  const CallAuthenticator* const authenticator_;
  const Clock* const clock_;
  SerialExecutor operators_;  // last: its work uses the rest
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_CALLS_H_
