#ifndef GMB_CLIENT_CLI_ADMIN_CLIENT_H_
#define GMB_CLIENT_CLI_ADMIN_CLIENT_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/operator_session.h"
#include "gmb/v1/admin.grpc.pb.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// Calls of the Admin service with an operator's token and a deadline.
// Thread-safe; movable while no call is in progress.
class AdminClient {
 public:
  // `socket_dir` as in ClientOptions. UNAVAILABLE or DEADLINE_EXCEEDED without
  // an ErrorDetail: no broker.
  [[nodiscard]] static absl::StatusOr<AdminClient> Connect(
      const std::string& socket_dir);

  // client.Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest())
  // `wait`: how long the broker itself may take over it, beside its answer.
  template <typename Request, typename Response>
  [[nodiscard]] absl::StatusOr<Response> Call(
      grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                              const Request&, Response*),
      const std::type_identity_t<Request>& request,
      absl::Duration wait = absl::ZeroDuration()) const {
    grpc::ClientContext context;
    session_.Authorize(&context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout + wait));
    Response response;
    const grpc::Status status =
        (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return ToStatus(status);
    return response;
  }

  // For the one call that streams. `context` must outlive the reader, and
  // ToStatus() says how it ended.
  [[nodiscard]] std::unique_ptr<grpc::ClientReader<v1::Event>> Watch(
      grpc::ClientContext* context) const;
  [[nodiscard]] absl::Status ToStatus(const grpc::Status& status) const;

  [[nodiscard]] const std::string& socket_dir() const {
    return session_.socket_dir();
  }

 private:
  static constexpr absl::Duration kTimeout = absl::Seconds(10);

  explicit AdminClient(internal::OperatorSession session);

  internal::OperatorSession session_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ADMIN_CLIENT_H_
