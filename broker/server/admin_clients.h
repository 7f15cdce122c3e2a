#ifndef GMB_BROKER_SERVER_ADMIN_CLIENTS_H_
#define GMB_BROKER_SERVER_ADMIN_CLIENTS_H_

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/server/admin_calls.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Operators take something from clients, on the operators' thread. None of it
// is stored.
class AdminClients {
 public:
  // All of them must outlive it.
  AdminClients(Core* core, QuotaStore* store, const AdminCalls* calls)
      : core_(core), store_(store), calls_(calls) {}

  absl::Status CloseSession(AuditRecord audit,
                            const v1::CloseSessionRequest& request,
                            v1::CloseSessionResponse* response);
  // A shared one (docs/shared.md).
  absl::Status DropLease(AuditRecord audit, const v1::DropLeaseRequest& request,
                         v1::DropLeaseResponse* response);
  // Finishes the call when memory has come back.
  void Reclaim(const Caller& caller, const v1::ReclaimRequest& request,
               v1::ReclaimResponse* response, const AdminCalls::Finish& finish);

 private:
  Core* const core_;
  QuotaStore* const store_;
  const AdminCalls* const calls_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_CLIENTS_H_
