#ifndef GMB_BROKER_SERVER_ADMIN_SERVICE_H_
#define GMB_BROKER_SERVER_ADMIN_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "broker/core/core.h"
#include "broker/core/wall_timer.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/serial_executor.h"
#include "broker/server/state_findings.h"
#include "broker/store/quota_store.h"
#include "broker/usage/usage_ledger.h"
#include "gmb/v1/admin.grpc.pb.h"

namespace gmb::broker {

// Opens and closes the socket directory of a tenant. Called on the operators'
// thread.
struct TenantDoors {
  std::function<absl::Status(const std::string& tenant)> open;
  std::function<absl::Status(const std::string& tenant)> close;
};

// Why a tenant's call of an operator's method fails.
[[nodiscard]] absl::Status NotOperator();

// The gRPC side of operators: authenticates, decodes, asks the core, encodes.
// Changes are made one at a time, on a thread of their own. A change that is
// stored is checked by the core, stored with its audit record, and made. For an
// action that is not stored, the record is written first, and taken out again
// when the core refuses the action. So everything that is done is in the audit
// log, and nothing that was refused.
class AdminService : public v1::Admin::CallbackService {
 public:
  // All of them must outlive the service. `dropped`: what the start left out,
  // which `gmb doctor` shows until the tenant, or the pool, is set anew. `metrics`:
  // the text of GetMetrics, made on gRPC's threads.
  AdminService(Core* core, QuotaStore* store, EventBus* events,
               const Clock* clock, const CallAuthenticator* calls,
               TenantDoors doors, DroppedValues dropped = {},
               std::function<std::string()> metrics = {});
  ~AdminService() override;

  // How many tenants and pools it still has in `dropped`. Any thread.
  [[nodiscard]] uint64_t ValuesNotInForce() const { return not_in_force_; }

  // For changes that come from elsewhere, the file: does the work on the
  // operators' thread, after the changes that were asked for before.
  void Post(std::function<void()> work) { operators_.Post(std::move(work)); }
  // On that thread, after such a change of a tenant, which was so before. Null:
  // there is no such tenant any more.
  void OnChanged(const std::string& tenant, const TenantPolicy* before);
  // More for `gmb doctor`, asked on that thread. Before the service serves.
  using AddFindings = std::function<void(v1::DiagnoseResponse*)>;
  void SetFindings(AddFindings more) { more_findings_ = std::move(more); }

  // The problem of the keeper, empty if it has none: for `gmb status`, on
  // gRPC's threads. Before the service serves.
  void SetKeeperProblem(std::function<std::string()> problem) {
    keeper_problem_ = std::move(problem);
  }

  // The ledger that ListUsage reads, on that thread; it outlives the service.
  // Before the service serves. Null: nothing is recorded.
  void SetUsage(UsageLedger* usage) { usage_ = usage; }

  // Reads the YAML of an apply; `name` is said in errors. Before the service
  // serves.
  using ReadTenants = std::function<absl::StatusOr<std::vector<TenantPolicy>>(
      const std::string& yaml, const std::string& name)>;
  void SetTenantsReader(ReadTenants read) { read_tenants_ = std::move(read); }

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
  // The operator who calls, or why the caller is none.
  absl::StatusOr<AuthenticatedCall> Operator(
      grpc::CallbackServerContext* context) const;
  // One that is answered later: its connection is proved until then.
  using HeldCall = std::shared_ptr<const AuthenticatedCall>;
  static HeldCall Hold(AuthenticatedCall call) {
    return std::make_shared<const AuthenticatedCall>(std::move(call));
  }
  // That value is set anew, if it was left out.
  void Drop(const std::string& tenant, std::string why) {
    dropped_[tenant] = std::move(why);
    ShowDropped();
  }
  void Settle(const std::string& dropped) {
    if (dropped_.erase(dropped) > 0) ShowDropped();
    fall_back_later_.erase(dropped);
    falls_back_later_ = !fall_back_later_.empty();
  }
  void ShowDropped() ABSL_LOCKS_EXCLUDED(shown_mu_);
  // Of what the caller does now; what it is, is still to be filled in.
  AuditRecord RecordOf(const Caller& caller) const;
  // Answers at once with what `report` fills in.
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context,
      const std::function<absl::Status()>& report) const;
  // Answers from the operators' thread: for what waits for the disk or the
  // driver.
  grpc::ServerUnaryReactor* OnOperatorsThread(
      grpc::CallbackServerContext* context,
      std::function<absl::Status(const AuditRecord&)> change);

  absl::StatusOr<TenantPolicy> Merge(
      const v1::SetTenantRequest& request,
      const absl::StatusOr<TenantPolicy>& known) const;
  absl::StatusOr<TenantPolicy> Former(
      const v1::SetTenantRequest& request,
      const absl::StatusOr<TenantPolicy>& known) const;
  absl::Status ShowPreview(const TenantPolicy& policy,
                           v1::SetTenantResponse* response) const;
  absl::Status FillTenant(const std::string& name,
                          v1::SetTenantResponse* response) const;
  absl::Status Carry(const AuditRecord& audit, const TenantPolicy& policy,
                     bool is_known, const v1::SetTenantRequest& request,
                     v1::SetTenantResponse* response);
  absl::Status Store(const AuditRecord& audit, const TenantPolicy& policy,
                     const v1::SetTenantRequest& request);
  // Whether what is declared is what the caller has seen; 0: whatever it is.
  absl::Status CheckRevision(uint64_t expected) const;
  absl::StatusOr<std::string> Resolve(const std::string& device) const;
  absl::Status DoResetTenant(AuditRecord audit,
                             const v1::ResetTenantRequest& request,
                             v1::SetTenantResponse* response);
  // The outcome of an apply: admin_apply.cc.
  struct ApplyPlan;
  absl::StatusOr<std::vector<TenantPolicy>> TenantsIn(
      const v1::ApplyRequest& request) const;
  absl::StatusOr<ApplyPlan> PlanApply(const v1::ApplyRequest& request,
                                      const Source& source,
                                      absl::Time at) const;
  absl::Status DoApply(AuditRecord audit, const v1::ApplyRequest& request,
                       v1::ApplyResponse* response);
  absl::Status CarryApply(const AuditRecord& audit, const ApplyPlan& plan);
  void FillApply(const ApplyPlan& plan, v1::ApplyResponse* response) const;
  // Lists an attempt of an operator that was refused, and returns why it was.
  absl::Status Refused(AuditRecord audit, const std::string& action,
                       const std::string& subject, const absl::Status& why);
  // Gives back what was set for a time that is over.
  void EndOverrides();
  void FallBack(const std::set<std::string>& tenants, const Declared& declared);
  void FallBackAlone(TenantPolicy policy);
  // Those whose former guarantees did not fit, when something has made room.
  void OnEvent(const v1::Event& event);
  void QueueFallBack();
  // It has another guarantee than is declared.
  [[nodiscard]] bool LacksGuarantee(const std::string& tenant) const;
  // Those whose guarantees were left out at the start.
  void WaitForDropped();
  // Its guarantee is still waited for.
  [[nodiscard]] bool FallsBackLater(const std::string& tenant) const;
  void FallBackLater();
  absl::Status DoSetTenant(AuditRecord audit,
                           const v1::SetTenantRequest& request,
                           v1::SetTenantResponse* response);
  absl::Status DoDeleteTenant(AuditRecord audit, const std::string& name,
                              uint64_t if_revision = 0);
  // Finishes the call now or later.
  void SeeOffAndDelete(const HeldCall& call,
                       const v1::DeleteTenantRequest& request,
                       grpc::ServerUnaryReactor* reactor);
  absl::Status EndSeeOff(const HeldCall& call, const std::string& name,
                         quota::TenantId tenant, const absl::Status& gone);
  absl::Status DoResizePool(AuditRecord audit,
                            const v1::ResizePoolRequest& request,
                            v1::ResizePoolResponse* response);
  absl::Status DoDrainPool(AuditRecord audit,
                           const v1::DrainPoolRequest& request,
                           v1::DrainPoolResponse* response);
  absl::StatusOr<v1::ListAuditResponse> DoListAudit(
      const v1::ListAuditRequest& request);
  absl::StatusOr<v1::ListUsageResponse> DoListUsage(
      const v1::ListUsageRequest& request);
  absl::Status DoDropLease(AuditRecord audit,
                           const v1::DropLeaseRequest& request,
                           v1::DropLeaseResponse* response);
  absl::Status DoCloseSession(AuditRecord audit,
                              const v1::CloseSessionRequest& request,
                              v1::CloseSessionResponse* response);
  // Finishes the call now or later.
  void DoReclaim(const HeldCall& call, const v1::ReclaimRequest& request,
                 v1::ReclaimResponse* response,
                 grpc::ServerUnaryReactor* reactor);

  Core* const core_;
  QuotaStore* const store_;
  EventBus* const events_;
  const Clock* const clock_;
  const CallAuthenticator* const calls_;
  const TenantDoors doors_;
  DroppedValues dropped_;  // the operators' thread's
  // Of these, tenants whose guarantee comes into force when it fits.
  std::set<std::string> fall_back_later_;
  std::atomic<bool> falls_back_later_ = false;
  std::atomic<bool> retry_queued_ = false;
  uint64_t subscription_ = 0;
  std::atomic<uint64_t> not_in_force_{0};
  // The lines that `gmb status` says of them, on any thread.
  mutable base::Mutex shown_mu_;
  std::vector<std::string> shown_dropped_ ABSL_GUARDED_BY(shown_mu_);
  const std::function<std::string()> metrics_;
  AddFindings more_findings_;
  std::function<std::string()> keeper_problem_;
  ReadTenants read_tenants_;
  UsageLedger* usage_ = nullptr;
  WallTimer expiry_;          // gives the next one work until it is stopped
  SerialExecutor operators_;  // last: its work uses the rest
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_SERVICE_H_
