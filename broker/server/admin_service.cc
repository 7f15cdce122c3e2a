// Operators' calls: decodes them, asks the core, stores changes.
#include "broker/server/admin_service.h"

#include <utility>

#include "broker/declared/merge.h"
#include "broker/machine/wire_form.h"
#include "broker/server/event_stream.h"
#include "broker/server/field_sources.h"
#include "broker/server/metrics_stream.h"
#include "broker/server/outside_findings.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// The stream of answers of a call that was refused before it began.
template <typename Message>
class RefusedAnswers : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedAnswers(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// Copies a report into the response, or passes its refusal on.
template <typename T>
absl::Status Fill(absl::StatusOr<T> report, T* response) {
  if (!report.ok()) return report.status();
  *response = *std::move(report);
  return absl::OkStatus();
}

}  // namespace

absl::Status NotOperator() {
  return proto::MakeError(
      v1::NOT_OPERATOR,
      "this call is for operators: connect through the admin socket");
}

AdminService::AdminService(Core* core, QuotaStore* store, EventBus* events,
                           const Clock* clock, const CallAuthenticator* calls,
                           TenantDoors doors, DroppedValues dropped,
                           std::function<std::string()> metrics)
    : core_(core),
      store_(store),
      events_(events),
      clock_(clock),
      calls_(calls),
      doors_(std::move(doors)),
      dropped_(std::move(dropped)),
      metrics_(std::move(metrics)),
      expiry_(clock, [this] { operators_.Post([this] { EndOverrides(); }); }) {
  expiry_.Set(NextExpiry(*store_->Shown()));
  ShowDropped();
  WaitForDropped();
  subscription_ =
      events_->Subscribe([this](const v1::Event& event) { OnEvent(event); });
}

AdminService::~AdminService() {
  events_->Unsubscribe(subscription_);
  expiry_.Stop();
}

void AdminService::ShowDropped() {
  constexpr size_t kMost = 100;
  not_in_force_ = dropped_.size();
  std::vector<std::string> shown;
  for (const auto& [name, why] : dropped_) {
    if (shown.size() < kMost) shown.push_back(why);
  }
  base::MutexLock lock(&shown_mu_);
  shown_dropped_ = std::move(shown);
}

absl::StatusOr<AuthenticatedCall> AdminService::Operator(
    grpc::CallbackServerContext* context) const {
  absl::StatusOr<AuthenticatedCall> call = calls_->Authenticate(*context);
  if (call.ok() && !call->caller.is_operator) return NotOperator();
  return call;
}

grpc::ServerUnaryReactor* AdminService::Answer(
    grpc::CallbackServerContext* context,
    const std::function<absl::Status()>& report) const {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<AuthenticatedCall> call = Operator(context);
  reactor->Finish(proto::ToGrpcStatus(call.ok() ? report() : call.status()));
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::OnOperatorsThread(
    grpc::CallbackServerContext* context,
    std::function<absl::Status(const AuditRecord&)> change) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    reactor->Finish(proto::ToGrpcStatus(call.status()));
    return reactor;
  }
  operators_.Post([this, reactor, caller = std::move(call->caller),
                   change = std::move(change)] {
    reactor->Finish(proto::ToGrpcStatus(change(RecordOf(caller))));
  });
  return reactor;
}

AuditRecord AdminService::RecordOf(const Caller& caller) const {
  AuditRecord record;
  record.at = clock_->WallTime();
  record.operator_name = caller.name;
  return record;
}

grpc::ServerUnaryReactor* AdminService::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest*,
    v1::GetStatusResponse* response) {
  return Answer(context, [&] {
    *response = core_->Status();
    if (keeper_problem_ != nullptr)
      response->set_keeper_problem(keeper_problem_());
    base::MutexLock lock(&shown_mu_);
    for (const std::string& why : shown_dropped_)
      response->add_not_in_force(why);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::GetTenant(
    grpc::CallbackServerContext* context, const v1::GetTenantRequest* request,
    v1::Tenant* response) {
  return Answer(context, [&] {
    const absl::Status filled =
        Fill(core_->TenantReport(request->name()), response);
    if (filled.ok()) AddSources(*store_->Shown(), response);
    return filled;
  });
}

grpc::ServerUnaryReactor* AdminService::ListTenants(
    grpc::CallbackServerContext* context, const v1::ListTenantsRequest* request,
    v1::ListTenantsResponse* response) {
  return Answer(context, [&] {
    const absl::Status filled = Fill(core_->Tenants(*request), response);
    if (request->without_fields()) return filled;
    const std::shared_ptr<const Declared> declared = store_->Shown();
    for (v1::Tenant& tenant : *response->mutable_tenants())
      AddSources(*declared, &tenant);
    return filled;
  });
}

grpc::ServerUnaryReactor* AdminService::ListSessions(
    grpc::CallbackServerContext* context,
    const v1::ListSessionsRequest* request,
    v1::ListSessionsResponse* response) {
  return Answer(context,
                [&] { return Fill(core_->Sessions(*request), response); });
}

grpc::ServerUnaryReactor* AdminService::ListLeases(
    grpc::CallbackServerContext* context, const v1::ListLeasesRequest* request,
    v1::ListLeasesResponse* response) {
  return Answer(context,
                [&] { return Fill(core_->Leases(*request), response); });
}

grpc::ServerUnaryReactor* AdminService::Explain(
    grpc::CallbackServerContext* context, const v1::ExplainRequest* request,
    v1::ExplainResponse* response) {
  return Answer(context,
                [&] { return Fill(core_->Explain(*request), response); });
}

grpc::ServerUnaryReactor* AdminService::Diagnose(
    grpc::CallbackServerContext* context, const v1::DiagnoseRequest*,
    v1::DiagnoseResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord&) {
    *response = core_->Diagnose();
    AddOutsideFindings(*core_, response);
    AddStateFindings(store_, response);
    AddDropped(dropped_, response);
    if (more_findings_ != nullptr) more_findings_(response);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::Event>* AdminService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok())
    return new RefusedAnswers<v1::Event>(proto::ToGrpcStatus(call.status()));
  return new EventStream(events_, *request, std::move(call->proof));
}

grpc::ServerWriteReactor<v1::MetricsPiece>* AdminService::GetMetrics(
    grpc::CallbackServerContext* context, const v1::GetMetricsRequest*) {
  absl::StatusOr<AuthenticatedCall> call = Operator(context);
  if (!call.ok()) {
    return new RefusedAnswers<v1::MetricsPiece>(
        proto::ToGrpcStatus(call.status()));
  }
  return new MetricsStream(metrics_ ? metrics_() : "", std::move(call->proof));
}

// --- Changes. The request and response live until the reactor finishes.

grpc::ServerUnaryReactor* AdminService::SetTenant(
    grpc::CallbackServerContext* context, const v1::SetTenantRequest* request,
    v1::SetTenantResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    const absl::Status done = DoSetTenant(audit, *request, response);
    if (done.ok()) return done;
    return Refused(audit, "set_tenant", request->name(), done);
  });
}

grpc::ServerUnaryReactor* AdminService::ResetTenant(
    grpc::CallbackServerContext* context, const v1::ResetTenantRequest* request,
    v1::SetTenantResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    const absl::Status done = DoResetTenant(audit, *request, response);
    if (done.ok()) return done;
    return Refused(audit, "reset_tenant", request->name(), done);
  });
}

grpc::ServerUnaryReactor* AdminService::ResizePool(
    grpc::CallbackServerContext* context, const v1::ResizePoolRequest* request,
    v1::ResizePoolResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    const absl::Status done = DoResizePool(audit, *request, response);
    if (done.ok()) return done;
    return Refused(audit, "resize_pool", request->device(), done);
  });
}

grpc::ServerUnaryReactor* AdminService::DrainPool(
    grpc::CallbackServerContext* context, const v1::DrainPoolRequest* request,
    v1::DrainPoolResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord& audit) {
    return DoDrainPool(audit, *request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::ListAudit(
    grpc::CallbackServerContext* context, const v1::ListAuditRequest* request,
    v1::ListAuditResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord&) {
    return Fill(DoListAudit(*request), response);
  });
}

grpc::ServerUnaryReactor* AdminService::ListUsage(
    grpc::CallbackServerContext* context, const v1::ListUsageRequest* request,
    v1::ListUsageResponse* response) {
  return OnOperatorsThread(context, [=, this](const AuditRecord&) {
    return Fill(DoListUsage(*request), response);
  });
}

absl::Status AdminService::DoResizePool(AuditRecord audit,
                                        const v1::ResizePoolRequest& request,
                                        v1::ResizePoolResponse* response) {
  absl::StatusOr<std::string> device = core_->ResolveDevice(request.device());
  if (!device.ok()) return device.status();
  const quota::Amount size = FromProto(request.size());
  if (absl::Status checked = core_->CheckResize(*device, size); !checked.ok())
    return checked;
  audit.action = "resize_pool";
  audit.subject = *device;
  audit.detail = request.ShortDebugString();
  if (absl::Status stored = store_->PutPoolTarget(*device, size, audit);
      !stored.ok()) {
    return stored;
  }
  Settle(DroppedPool(*device));
  return Fill(core_->ResizePool(*device, size), response->mutable_change());
}

absl::Status AdminService::DoDrainPool(AuditRecord audit,
                                       const v1::DrainPoolRequest& request,
                                       v1::DrainPoolResponse* response) {
  absl::StatusOr<std::string> device = core_->ResolveDevice(request.device());
  if (!device.ok()) return device.status();
  audit.action = request.draining() ? "drain_pool" : "undrain_pool";
  audit.subject = *device;
  return store_->Audit(
      audit,
      [&] {
        const absl::StatusOr<uint64_t> leased =
            core_->DrainPool(*device, request.draining());
        if (leased.ok()) response->set_leased_bytes(*leased);
        return leased.status();
      },
      QuotaStore::OnBadDisk::kActAnyway);
}

}  // namespace gmb::broker
