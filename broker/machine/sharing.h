#ifndef GMB_BROKER_MACHINE_SHARING_H_
#define GMB_BROKER_MACHINE_SHARING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/lease_desk.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/recalls.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/effect.h"
#include "quota/units.h"

namespace gmb::broker {

// Leases with a name: sealed and shared (shared.cc), attached to (attach.cc),
// dropped (docs/shared.md). Every lease ends by way of it, since its name ends
// first.
class Sharing {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    HostDesk& host;
    LeaseMover& mover;
    LeaseDesk& leases;
    Recalls& recalls;
  };
  Sharing(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        host_(below.host),
        mover_(below.mover),
        leases_(below.leases),
        recalls_(below.recalls) {}

  // A lease of another broker. If another has its name by now it has none.
  void Adopt(Lease* lease);

  // --- Names.
  // Of an Acquire; the name is free.
  void TakeName(quota::TenantId tenant, const PendingAcquire& request);
  // The lease has ended, or will never be: nobody can attach.
  void EndName(quota::TenantId tenant, const PendingAcquire& request,
               Turn& turn);
  void EndLease(Lease* lease, bool reuse, Turn& turn);
  void Seal(Session* session, uint64_t client_id, uint64_t lease_id,
            Turn& turn);

  // --- Exports.
  void Export(Session* session, uint64_t client_id, const v1::Export& wanted,
              Turn& turn);

  // --- Sessions that attach.
  void Attach(Session* session, uint64_t client_id, const v1::Attach& attach,
              Turn& turn);
  // Those who wait for the lease get it once it is on the device and whole, and
  // until then it is asked back for them.
  void ServeAttaches(Lease* lease, Turn& turn);
  void GiveUpAttach(Session* session, uint64_t client_id,
                    const absl::Status& why, Turn& turn);
  void GiveUpAllOf(Session* session, const absl::Status& why, Turn& turn);
  // Those who wait for a lease that could not be brought back.
  void RefuseWaiting(const Lease& lease, const absl::Status& why, Turn& turn);
  void OnBackForAttach(quota::LeaseId id, Turn& turn);
  void OnAttachDenied(const quota::Denied& denied, quota::LeaseId id,
                      Turn& turn);
  void ExpireAttaches(Turn& turn);

  // --- Sessions that leave.
  // The session has ended: nothing leads to it any more. The shared leases that
  // it had.
  std::vector<quota::LeaseId> ForgetSession(Session* session);
  // The session has it no longer; a shared one stays for those who do.
  void Leave(Session* session, Lease* lease, bool reuse, Turn& turn);
  void Drop(Session* session, uint64_t client_id, const std::string& name,
            Turn& turn);
  // How many have it still.
  [[nodiscard]] absl::StatusOr<uint32_t> DropName(quota::TenantId tenant,
                                                  const std::string& name,
                                                  Turn& turn);
  // Of a tenant that is being deleted: none outlives its sessions.
  void DropAll(quota::TenantId tenant, Turn& turn);

 private:
  void Share(Lease* lease, Turn& turn);
  // From now on it is its tenant's, and no session's.
  void MakeTenants(Lease* lease, Turn& turn);
  absl::Status ExportNow(Lease* lease, const std::string& key, Turn& turn);
  absl::Status AttachNow(Session* session, uint64_t client_id, Lease* lease,
                         Turn& turn);
  void RefuseAttaches(const std::vector<PendingAttach>& waiting,
                      const absl::Status& status, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  HostDesk& host_;
  LeaseMover& mover_;
  LeaseDesk& leases_;
  Recalls& recalls_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SHARING_H_
