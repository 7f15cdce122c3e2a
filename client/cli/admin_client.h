#ifndef GMB_CLIENT_CLI_ADMIN_CLIENT_H_
#define GMB_CLIENT_CLI_ADMIN_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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
  template <typename Request, typename Response>
  using Method = absl::StatusOr<Response> (AdminClient::*)(
      const Request&, absl::Duration) const;

  [[nodiscard]] absl::StatusOr<v1::GetStatusResponse> GetStatus(
      const v1::GetStatusRequest& request,
      absl::Duration wait = absl::ZeroDuration()) const;
  [[nodiscard]] absl::StatusOr<v1::SetTenantResponse> SetTenant(
      const v1::SetTenantRequest& request,
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

  // Connects first, as calls do. The reader does not outlive this client.
  [[nodiscard]] std::unique_ptr<EventReader> Watch() const;

  [[nodiscard]] const std::string& socket_dir() const;

 private:
  struct Impl;
  explicit AdminClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ADMIN_CLIENT_H_
