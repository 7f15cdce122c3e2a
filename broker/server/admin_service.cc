// Operators' calls, each with the part of the service that answers it.
#include "broker/server/admin_service.h"

#include <utility>

#include "broker/machine/wire_form.h"
#include "broker/server/admin_audit.h"
#include "broker/server/event_stream.h"
#include "broker/server/metrics_stream.h"
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

}  // namespace

// The parts are given calls_ before it is made, and give it work only from here
// on.
AdminService::AdminService(Core* core, QuotaStore* store, EventBus* events,
                           const Clock* clock, const CallAuthenticator* calls,
                           AdminServiceOptions options)
    : store_(store),
      events_(events),
      doors_(std::move(options.doors)),
      not_in_force_(std::move(options.dropped)),
      waiting_(core, store, events, &not_in_force_, &calls_),
      overrides_(core, store, clock, &not_in_force_, &waiting_, &calls_),
      grown_(core, store, events, &not_in_force_, &calls_),
      reports_(core, store, &not_in_force_, std::move(options.sources)),
      tenants_(core, store, &doors_, &waiting_, &overrides_),
      departures_(core, store, &doors_, &waiting_, &calls_),
      apply_(core, store, &doors_, &waiting_, &overrides_, &departures_,
             std::move(options.read_tenants)),
      pools_(core, store, &not_in_force_),
      clients_(core, store, &calls_),
      calls_(calls, clock) {
  waiting_.Start();
  grown_.Start();
  overrides_.Await(*store->Shown());
}

AdminService::~AdminService() {
  waiting_.Stop();
  grown_.Stop();
  overrides_.Stop();
}

// --- Reports.

grpc::ServerUnaryReactor* AdminService::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest*,
    v1::GetStatusResponse* response) {
  return calls_.Answer(context, [&] { return reports_.Status(response); });
}

grpc::ServerUnaryReactor* AdminService::GetTenant(
    grpc::CallbackServerContext* context, const v1::GetTenantRequest* request,
    v1::Tenant* response) {
  return calls_.Answer(context,
                       [&] { return reports_.Tenant(*request, response); });
}

grpc::ServerUnaryReactor* AdminService::ListTenants(
    grpc::CallbackServerContext* context, const v1::ListTenantsRequest* request,
    v1::ListTenantsResponse* response) {
  return calls_.Answer(context,
                       [&] { return reports_.Tenants(*request, response); });
}

grpc::ServerUnaryReactor* AdminService::ListSessions(
    grpc::CallbackServerContext* context,
    const v1::ListSessionsRequest* request,
    v1::ListSessionsResponse* response) {
  return calls_.Answer(context,
                       [&] { return reports_.Sessions(*request, response); });
}

grpc::ServerUnaryReactor* AdminService::ListLeases(
    grpc::CallbackServerContext* context, const v1::ListLeasesRequest* request,
    v1::ListLeasesResponse* response) {
  return calls_.Answer(context,
                       [&] { return reports_.Leases(*request, response); });
}

grpc::ServerUnaryReactor* AdminService::Explain(
    grpc::CallbackServerContext* context, const v1::ExplainRequest* request,
    v1::ExplainResponse* response) {
  return calls_.Answer(context,
                       [&] { return reports_.Explain(*request, response); });
}

grpc::ServerUnaryReactor* AdminService::Diagnose(
    grpc::CallbackServerContext* context, const v1::DiagnoseRequest*,
    v1::DiagnoseResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord&) {
    return reports_.Diagnose(response);
  });
}

grpc::ServerUnaryReactor* AdminService::ListAudit(
    grpc::CallbackServerContext* context, const v1::ListAuditRequest* request,
    v1::ListAuditResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord&) {
    return reports_.Audit(*request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::ListUsage(
    grpc::CallbackServerContext* context, const v1::ListUsageRequest* request,
    v1::ListUsageResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord&) {
    return reports_.Usage(*request, response);
  });
}

grpc::ServerWriteReactor<v1::Event>* AdminService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  absl::StatusOr<AuthenticatedCall> call = calls_.Operator(context);
  if (!call.ok())
    return new RefusedAnswers<v1::Event>(proto::ToGrpcStatus(call.status()));
  return new EventStream(events_, *request, std::move(call->proof));
}

grpc::ServerWriteReactor<v1::MetricsPiece>* AdminService::GetMetrics(
    grpc::CallbackServerContext* context, const v1::GetMetricsRequest*) {
  absl::StatusOr<AuthenticatedCall> call = calls_.Operator(context);
  if (!call.ok()) {
    return new RefusedAnswers<v1::MetricsPiece>(
        proto::ToGrpcStatus(call.status()));
  }
  return new MetricsStream(reports_.Metrics(), std::move(call->proof));
}

// --- Changes. The request and response live until the reactor finishes.

grpc::ServerUnaryReactor* AdminService::SetTenant(
    grpc::CallbackServerContext* context, const v1::SetTenantRequest* request,
    v1::SetTenantResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return RecordIfRefused(store_, audit, "set_tenant", request->name(),
                           tenants_.Set(audit, *request, response));
  });
}

grpc::ServerUnaryReactor* AdminService::ResetTenant(
    grpc::CallbackServerContext* context, const v1::ResetTenantRequest* request,
    v1::SetTenantResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return RecordIfRefused(store_, audit, "reset_tenant", request->name(),
                           tenants_.Reset(audit, *request, response));
  });
}

grpc::ServerUnaryReactor* AdminService::Apply(
    grpc::CallbackServerContext* context, const v1::ApplyRequest* request,
    v1::ApplyResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return apply_.Apply(audit, *request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::DeleteTenant(
    grpc::CallbackServerContext* context,
    const v1::DeleteTenantRequest* request, v1::DeleteTenantResponse*) {
  if (SaneWait(request->wait()).count() == 0) {
    return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
      return RecordIfRefused(
          store_, audit, "delete_tenant", request->name(),
          departures_.Delete(audit, request->name(), request->if_revision()));
    });
  }
  return calls_.Begin(context, [=, this](const Caller& caller,
                                         const AdminCalls::Finish& finish) {
    departures_.SeeOff(caller, *request, finish);
  });
}

grpc::ServerUnaryReactor* AdminService::ResizePool(
    grpc::CallbackServerContext* context, const v1::ResizePoolRequest* request,
    v1::ResizePoolResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return RecordIfRefused(store_, audit, "resize_pool", request->device(),
                           pools_.Resize(audit, *request, response));
  });
}

grpc::ServerUnaryReactor* AdminService::DrainPool(
    grpc::CallbackServerContext* context, const v1::DrainPoolRequest* request,
    v1::DrainPoolResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return pools_.Drain(audit, *request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::CloseSession(
    grpc::CallbackServerContext* context,
    const v1::CloseSessionRequest* request,
    v1::CloseSessionResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return clients_.CloseSession(audit, *request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::DropLease(
    grpc::CallbackServerContext* context, const v1::DropLeaseRequest* request,
    v1::DropLeaseResponse* response) {
  return calls_.InTurn(context, [=, this](const AuditRecord& audit) {
    return clients_.DropLease(audit, *request, response);
  });
}

grpc::ServerUnaryReactor* AdminService::Reclaim(
    grpc::CallbackServerContext* context, const v1::ReclaimRequest* request,
    v1::ReclaimResponse* response) {
  return calls_.Begin(context, [=, this](const Caller& caller,
                                         const AdminCalls::Finish& finish) {
    clients_.Reclaim(caller, *request, response, finish);
  });
}

}  // namespace gmb::broker
