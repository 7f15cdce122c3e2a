#ifndef GMB_BROKER_SERVER_ADMIN_SERVICE_H_
#define GMB_BROKER_SERVER_ADMIN_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "broker/core/core.h"
#include "broker/server/admin_apply.h"
#include "broker/server/admin_calls.h"
#include "broker/server/admin_clients.h"
#include "broker/server/admin_departures.h"
#include "broker/server/admin_pools.h"
#include "broker/server/admin_reports.h"
#include "broker/server/admin_tenants.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/grown_pools.h"
#include "broker/server/not_in_force.h"
#include "broker/server/overrides.h"
#include "broker/server/tenant_doors.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.grpc.pb.h"

namespace gmb::broker {

// The parts of the broker that the service needs beside the core, and what the
// start found.
struct AdminServiceOptions {
  TenantDoors doors;
  // Stored values that the start left out: `gmb doctor` shows each until the
  // tenant, or the pool, is set anew.
  DroppedValues dropped = {};
  ReportSources sources = {};
  ReadTenants read_tenants = {};
};

// The gRPC side of operators: each call goes to the part of the service that has
// its subject. Changes are made one at a time, on a thread of their own. A change
// that is stored is checked by the core, stored with its audit record, and made.
// For an action that is not stored, the record is written first, and taken out
// again when the core refuses the action. So everything that is done is in the
// audit log, and nothing that was refused, but as refused.
class AdminService : public v1::Admin::CallbackService {
 public:
  // All of them must outlive the service, the usage ledger too.
  AdminService(Core* core, QuotaStore* store, EventBus* events,
               const Clock* clock, const CallAuthenticator* calls,
               AdminServiceOptions options);
  ~AdminService() override;

  // How many tenants and pools have stored values that are not in force. Any
  // thread.
  [[nodiscard]] uint64_t ValuesNotInForce() const {
    return not_in_force_.size();
  }

  // For changes that come from elsewhere, the file: does the work on the
  // operators' thread, after the changes that were asked for before.
  void Post(std::function<void()> work) { calls_.Post(std::move(work)); }
  // On that thread, after such a change of a tenant, once it is stored.
  void OnChanged(const std::string& tenant) { waiting_.OnChanged(tenant); }
  // More for `gmb doctor`, asked on that thread. Before the service serves.
  void SetFindings(AdminReports::AddFindings more) {
    reports_.SetFindings(std::move(more));
  }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* SetTenant(grpc::CallbackServerContext* context,
                                      const v1::SetTenantRequest* request,
                                      v1::SetTenantResponse* response) override;
  grpc::ServerUnaryReactor* ResetTenant(
      grpc::CallbackServerContext* context,
      const v1::ResetTenantRequest* request,
      v1::SetTenantResponse* response) override;
  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* context,
                                  const v1::ApplyRequest* request,
                                  v1::ApplyResponse* response) override;
  grpc::ServerUnaryReactor* GetTenant(grpc::CallbackServerContext* context,
                                      const v1::GetTenantRequest* request,
                                      v1::Tenant* response) override;
  grpc::ServerUnaryReactor* ListTenants(
      grpc::CallbackServerContext* context,
      const v1::ListTenantsRequest* request,
      v1::ListTenantsResponse* response) override;
  grpc::ServerUnaryReactor* DropLease(grpc::CallbackServerContext* context,
                                      const v1::DropLeaseRequest* request,
                                      v1::DropLeaseResponse* response) override;
  grpc::ServerUnaryReactor* DeleteTenant(
      grpc::CallbackServerContext* context,
      const v1::DeleteTenantRequest* request,
      v1::DeleteTenantResponse* response) override;
  grpc::ServerUnaryReactor* ListSessions(
      grpc::CallbackServerContext* context,
      const v1::ListSessionsRequest* request,
      v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* CloseSession(
      grpc::CallbackServerContext* context,
      const v1::CloseSessionRequest* request,
      v1::CloseSessionResponse* response) override;
  grpc::ServerUnaryReactor* ListLeases(
      grpc::CallbackServerContext* context,
      const v1::ListLeasesRequest* request,
      v1::ListLeasesResponse* response) override;
  grpc::ServerUnaryReactor* ResizePool(
      grpc::CallbackServerContext* context,
      const v1::ResizePoolRequest* request,
      v1::ResizePoolResponse* response) override;
  grpc::ServerUnaryReactor* DrainPool(grpc::CallbackServerContext* context,
                                      const v1::DrainPoolRequest* request,
                                      v1::DrainPoolResponse* response) override;
  grpc::ServerUnaryReactor* Reclaim(grpc::CallbackServerContext* context,
                                    const v1::ReclaimRequest* request,
                                    v1::ReclaimResponse* response) override;
  grpc::ServerWriteReactor<v1::Event>* Watch(
      grpc::CallbackServerContext* context,
      const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* Diagnose(grpc::CallbackServerContext* context,
                                     const v1::DiagnoseRequest* request,
                                     v1::DiagnoseResponse* response) override;
  grpc::ServerUnaryReactor* ListAudit(grpc::CallbackServerContext* context,
                                      const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;
  grpc::ServerUnaryReactor* ListUsage(grpc::CallbackServerContext* context,
                                      const v1::ListUsageRequest* request,
                                      v1::ListUsageResponse* response) override;
  grpc::ServerWriteReactor<v1::MetricsPiece>* GetMetrics(
      grpc::CallbackServerContext* context,
      const v1::GetMetricsRequest* request) override;

 private:
  QuotaStore* const store_;
  EventBus* const events_;
  const TenantDoors doors_;
  NotInForce not_in_force_;
  WaitingGuarantees waiting_;
  Overrides overrides_;
  GrownPools grown_;
  AdminReports reports_;
  AdminTenants tenants_;
  AdminDepartures departures_;
  AdminApply apply_;
  AdminPools pools_;
  AdminClients clients_;
  AdminCalls calls_;  // last: its work uses the rest
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_SERVICE_H_
