// The command's calls to the broker, and what it says when none answers.
#include "client/cli/admin_client.h"

#include <utility>

#include "base/status_macros.h"
#include "client/cli/no_answer.h"
#include "client/session/operator_session.h"
#include "client/session/socket_dir.h"
#include "gmb/v1/admin.grpc.pb.h"
#include "proto/utf8_check.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);
// A broker that dies breaks its connections one after the other.
constexpr absl::Duration kHangUpPatience = absl::Seconds(2);

}  // namespace

struct AdminClient::Impl {
  explicit Impl(internal::OperatorSession opened)
      : session(std::move(opened)),
        stub(v1::Admin::NewStub(session.channel())) {}

  // Nothing was asked yet, so it may be tried again and again.
  [[nodiscard]] absl::Status Connect(absl::Time deadline) const {
    const absl::Status status = session.AwaitChannel(deadline);
    if (absl::IsDeadlineExceeded(status))
      return CrowdedBroker(status, session.socket_dir());
    return LostBroker(status, session.socket_dir());
  }

  [[nodiscard]] absl::Status ToStatus(const grpc::Status& ended) const {
    const absl::Status status = internal::OperatorSession::ToStatus(ended);
    // Calls are cancelled by a broker that has hung up before, or from here.
    const absl::Duration patience =
        absl::IsCancelled(status) ? absl::ZeroDuration() : kHangUpPatience;
    if (LooksStopped(status) && !session.AwaitHangUp(patience))
      return LostConnection(status, session.socket_dir());
    return LostBroker(status, session.socket_dir());
  }

  template <typename Request, typename Response>
  [[nodiscard]] absl::StatusOr<Response> Call(
      grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                              const Request&, Response*),
      const Request& request, absl::Duration wait) const {
    GMB_RETURN_IF_ERROR(proto::CheckUtf8(request));
    const absl::Time deadline = absl::Now() + kTimeout;
    GMB_RETURN_IF_ERROR(Connect(deadline));
    grpc::ClientContext context;
    session.Authorize(&context);
    context.set_deadline(absl::ToChronoTime(deadline + wait));
    Response response;
    const grpc::Status status =
        (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return ToStatus(status);
    return response;
  }

  // The one page that is asked for, or all of them as one.
  template <typename Request, typename Response>
  [[nodiscard]] absl::StatusOr<Response> PageOrAll(
      const AdminClient& client, Method<Request, Response> list,
      grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                              const Request&, Response*),
      const Request& request, absl::Duration wait) const {
    if (request.page_size() != 0 || !request.page_token().empty())
      return Call(method, request, wait);
    Response all;
    const auto add = [&](Response&& page) {
      all.MergeFrom(page);
      return true;
    };
    GMB_RETURN_IF_ERROR(client.EachPage(list, request, add));
    all.clear_next_page_token();
    return all;
  }

  [[nodiscard]] absl::StatusOr<std::string> GetMetrics() const {
    const absl::Time deadline = absl::Now() + kTimeout;
    GMB_RETURN_IF_ERROR(Connect(deadline));
    grpc::ClientContext context;
    session.Authorize(&context);
    context.set_deadline(absl::ToChronoTime(deadline));
    const std::unique_ptr<grpc::ClientReader<v1::MetricsPiece>> reader =
        stub->GetMetrics(&context, v1::GetMetricsRequest());
    std::string text;
    v1::MetricsPiece piece;
    while (reader->Read(&piece)) text += piece.text();
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return ToStatus(status);
    return text;
  }

  class Events;

  internal::OperatorSession session;
  std::unique_ptr<v1::Admin::Stub> stub;
};

class AdminClient::Impl::Events final : public EventReader {
 public:
  Events(const Impl& impl, const v1::WatchRequest& request)
      : impl_(impl), connected_(Connected(impl, request)) {
    impl_.session.Authorize(&context_);
    if (connected_.ok()) reader_ = impl_.stub->Watch(&context_, request);
  }

  bool Read(v1::Event* event) override {
    return reader_ != nullptr && reader_->Read(event);
  }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override {
    if (reader_ == nullptr) return connected_;
    const grpc::Status ended = reader_->Finish();
    if (!ended.ok()) return impl_.ToStatus(ended);
    return impl_.ToStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                       "it ended the stream of events"));
  }

 private:
  static absl::Status Connected(const Impl& impl,
                                const v1::WatchRequest& request) {
    GMB_RETURN_IF_ERROR(proto::CheckUtf8(request));
    return impl.Connect(absl::Now() + kTimeout);
  }

  const Impl& impl_;
  const absl::Status connected_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader_;
};

AdminClient::AdminClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminClient::AdminClient(AdminClient&&) noexcept = default;
AdminClient& AdminClient::operator=(AdminClient&&) noexcept = default;
AdminClient::~AdminClient() = default;

absl::StatusOr<AdminClient> AdminClient::Connect(
    const std::string& socket_dir) {
  absl::StatusOr<internal::OperatorSession> session =
      internal::OperatorSession::Open(socket_dir, kTimeout);
  if (!session.ok()) {
    const std::string directory = internal::ResolveSocketDir(socket_dir);
    return internal::IsTenantDirectory(directory)
               ? NotForTenants(directory)
               : NoBrokerForOperators(session.status(), directory);
  }
  return AdminClient(std::make_unique<Impl>(*std::move(session)));
}

absl::StatusOr<v1::GetStatusResponse> AdminClient::GetStatus(
    const v1::GetStatusRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::GetStatus, request, wait);
}

absl::StatusOr<v1::SetTenantResponse> AdminClient::SetTenant(
    const v1::SetTenantRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::SetTenant, request, wait);
}

absl::StatusOr<v1::SetTenantResponse> AdminClient::ResetTenant(
    const v1::ResetTenantRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::ResetTenant, request, wait);
}

absl::StatusOr<v1::ApplyResponse> AdminClient::Apply(
    const v1::ApplyRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::Apply, request, wait);
}

absl::StatusOr<v1::Tenant> AdminClient::GetTenant(
    const v1::GetTenantRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::GetTenant, request, wait);
}

absl::StatusOr<v1::ListTenantsResponse> AdminClient::ListTenants(
    const v1::ListTenantsRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::ListTenants,
                          &v1::Admin::Stub::ListTenants, request, wait);
}

absl::StatusOr<v1::DeleteTenantResponse> AdminClient::DeleteTenant(
    const v1::DeleteTenantRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::DeleteTenant, request, wait);
}

absl::StatusOr<v1::ListSessionsResponse> AdminClient::ListSessions(
    const v1::ListSessionsRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::ListSessions,
                          &v1::Admin::Stub::ListSessions, request, wait);
}

absl::StatusOr<v1::CloseSessionResponse> AdminClient::CloseSession(
    const v1::CloseSessionRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::CloseSession, request, wait);
}

absl::StatusOr<v1::ListLeasesResponse> AdminClient::ListLeases(
    const v1::ListLeasesRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::ListLeases,
                          &v1::Admin::Stub::ListLeases, request, wait);
}

absl::StatusOr<v1::DropLeaseResponse> AdminClient::DropLease(
    const v1::DropLeaseRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::DropLease, request, wait);
}

absl::StatusOr<v1::ResizePoolResponse> AdminClient::ResizePool(
    const v1::ResizePoolRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::ResizePool, request, wait);
}

absl::StatusOr<v1::DrainPoolResponse> AdminClient::DrainPool(
    const v1::DrainPoolRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::DrainPool, request, wait);
}

absl::StatusOr<v1::ReclaimResponse> AdminClient::Reclaim(
    const v1::ReclaimRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::Reclaim, request, wait);
}

absl::StatusOr<v1::ExplainResponse> AdminClient::Explain(
    const v1::ExplainRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::Explain,
                          &v1::Admin::Stub::Explain, request, wait);
}

absl::StatusOr<v1::DiagnoseResponse> AdminClient::Diagnose(
    const v1::DiagnoseRequest& request, absl::Duration wait) const {
  return impl_->Call(&v1::Admin::Stub::Diagnose, request, wait);
}

absl::StatusOr<v1::ListAuditResponse> AdminClient::ListAudit(
    const v1::ListAuditRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::ListAudit,
                          &v1::Admin::Stub::ListAudit, request, wait);
}

absl::StatusOr<v1::ListUsageResponse> AdminClient::ListUsage(
    const v1::ListUsageRequest& request, absl::Duration wait) const {
  return impl_->PageOrAll(*this, &AdminClient::ListUsage,
                          &v1::Admin::Stub::ListUsage, request, wait);
}

absl::StatusOr<std::string> AdminClient::GetMetrics() const {
  return impl_->GetMetrics();
}

std::unique_ptr<EventReader> AdminClient::Watch(
    const v1::WatchRequest& request) const {
  return std::make_unique<Impl::Events>(*impl_, request);
}

const std::string& AdminClient::socket_dir() const {
  return impl_->session.socket_dir();
}

}  // namespace gmb::cli
