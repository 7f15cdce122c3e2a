#ifndef GMB_CLIENT_CLI_ADMIN_CLIENT_H_
#define GMB_CLIENT_CLI_ADMIN_CLIENT_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The events of a broker, as they happen. Read() on one thread, Cancel() on
// any.
class EventReader {
 public:
  virtual ~EventReader() = default;

  // False at the end.
  [[nodiscard]] virtual bool Read(v1::Event* event) = 0;
  virtual void Cancel() = 0;
  // After the end: why it came, which is never OK. Events have none of their
  // own.
  [[nodiscard]] virtual absl::Status Finish() = 0;
};

// Calls of the Admin service with an operator's token and a deadline.
// Thread-safe; movable while no call is in progress. gRPC stays behind it:
// its headers take longer to compile than the commands that call.
class AdminClient {
 public:
  // `socket_dir` as in ClientOptions. UNAVAILABLE or DEADLINE_EXCEEDED without
  // an ErrorDetail: no broker.
  [[nodiscard]] static absl::StatusOr<AdminClient> Connect(
      const std::string& socket_dir);
  AdminClient(AdminClient&&) noexcept;
  AdminClient& operator=(AdminClient&&) noexcept;
  ~AdminClient();

  // The calls of the service. `wait` is how long the broker itself may take
  // over one, beside its answer.
  //
  // A list, or an explanation, that names neither a page's size nor a token is
  // asked for page after page, and all of it is the answer.
  template <typename Request, typename Response>
  using Method = absl::StatusOr<Response> (AdminClient::*)(
      const Request&, absl::Duration) const;

  [[nodiscard]] absl::StatusOr<v1::GetStatusResponse> GetStatus(
      const v1::GetStatusRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::SetTenantResponse> SetTenant(
      const v1::SetTenantRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::SetTenantResponse> ResetTenant(
      const v1::ResetTenantRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ApplyResponse> Apply(
      const v1::ApplyRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::Tenant> GetTenant(
      const v1::GetTenantRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ListTenantsResponse> ListTenants(
      const v1::ListTenantsRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::DeleteTenantResponse> DeleteTenant(
      const v1::DeleteTenantRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ListSessionsResponse> ListSessions(
      const v1::ListSessionsRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::CloseSessionResponse> CloseSession(
      const v1::CloseSessionRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ListLeasesResponse> ListLeases(
      const v1::ListLeasesRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::DropLeaseResponse> DropLease(
      const v1::DropLeaseRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ResizePoolResponse> ResizePool(
      const v1::ResizePoolRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::DrainPoolResponse> DrainPool(
      const v1::DrainPoolRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ReclaimResponse> Reclaim(
      const v1::ReclaimRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ExplainResponse> Explain(
      const v1::ExplainRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::DiagnoseResponse> Diagnose(
      const v1::DiagnoseRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::ListAuditResponse> ListAudit(
      const v1::ListAuditRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;

  [[nodiscard]] absl::StatusOr<v1::ListUsageResponse> ListUsage(
      const v1::ListUsageRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;

  // One page after the other, each as it comes, until `on_page` answers false.
  template <typename Request, typename Response>
  [[nodiscard]] absl::Status EachPage(
      Method<Request, Response> method, Request request,
      std::type_identity_t<absl::FunctionRef<bool(Response&&)>> on_page) const;

  // The broker's metrics in Prometheus's text format.
  [[nodiscard]] absl::StatusOr<std::string> GetMetrics() const;

  // Connects first, as calls do. The reader does not outlive this client.
  [[nodiscard]] std::unique_ptr<EventReader> Watch(
      const v1::WatchRequest& request = v1::WatchRequest()) const;

  [[nodiscard]] const std::string& socket_dir() const;

  static constexpr int kRowsAPage = 1000;

 private:
  struct Impl;
  explicit AdminClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

template <typename Request, typename Response>
absl::Status AdminClient::EachPage(
    Method<Request, Response> method, Request request,
    std::type_identity_t<absl::FunctionRef<bool(Response&&)>> on_page) const {
  // The most that the broker allows.
  if (request.page_size() == 0) request.set_page_size(kRowsAPage);
  for (;;) {
    GMB_ASSIGN_OR_RETURN(Response page,
                         (this->*method)(request, absl::ZeroDuration()));
    const std::string next = page.next_page_token();
    if (!on_page(std::move(page)) || next.empty()) return absl::OkStatus();
    if (next == request.page_token())
      return absl::InternalError("the broker's list does not get on");
    request.set_page_token(next);
  }
}

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ADMIN_CLIENT_H_
