#ifndef GMB_BROKER_MACHINE_OPERATOR_DESK_H_
#define GMB_BROKER_MACHINE_OPERATOR_DESK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "broker/machine/departure.h"
#include "broker/machine/file_change.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/reclaimer.h"
#include "broker/machine/request_desk.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/sharing.h"
#include "broker/machine/state.h"
#include "broker/machine/tenant.h"
#include "broker/machine/turn.h"
#include "gmb/v1/admin.pb.h"
#include "quota/amount.h"
#include "quota/units.h"

namespace gmb::broker {

// The changes that operators make: tenants and pools (tenants.cc), a whole file
// (file_changes.cc), tenants on their way out, and the broker's own end
// (departures.cc).
// tenant_checks.cc says whether a change of a tenant can be made.
// See Core for what each does.
class OperatorDesk {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    PoolKeeper& pools;
    HostDesk& host;
    Sharing& sharing;
    RequestDesk& requests;
    Reclaimer& reclaimer;
  };
  OperatorDesk(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        pools_(below.pools),
        host_(below.host),
        sharing_(below.sharing),
        requests_(below.requests),
        reclaimer_(below.reclaimer) {}

  // --- Tenants.
  [[nodiscard]] absl::StatusOr<TenantPolicy> GetPolicy(
      absl::string_view name) const;
  [[nodiscard]] absl::StatusOr<quota::TenantId> IdOf(
      absl::string_view name) const;
  // Whether an operator's change can be made.
  [[nodiscard]] absl::Status CheckTenant(const TenantPolicy& policy) const;
  // The bytes that it would take from each tenant, a Change for each pool.
  [[nodiscard]] std::vector<v1::Change> Preview(
      const TenantPolicy& policy) const;
  [[nodiscard]] absl::StatusOr<std::vector<v1::Change>> SetTenant(
      const TenantPolicy& policy, Turn& turn);
  [[nodiscard]] absl::StatusOr<std::vector<HeldBack>> ApplyFile(
      const FileChange& change, Turn& turn);
  // Whether all of it together could be made, if it may take what it takes.
  [[nodiscard]] absl::Status CheckFile(const FileChange& change) const;
  // See Core.
  [[nodiscard]] absl::StatusOr<bool> BeginDelete(absl::string_view name);
  [[nodiscard]] absl::Status DeleteTenant(absl::string_view name, Turn& turn);
  [[nodiscard]] absl::Status StartDeparture(absl::string_view name,
                                            quota::Nanoseconds wait,
                                            Departure::Done done, Turn& turn);
  void EndDeparture(absl::string_view name, Turn& turn);
  void CheckDepartures(quota::Instant now, Turn& turn);
  void EndKept(absl::string_view tenant, Turn& turn);
  [[nodiscard]] absl::StatusOr<uint32_t> DropLease(absl::string_view tenant,
                                                   const std::string& name,
                                                   Turn& turn);

  // --- Pools.
  // Before the servers start.
  [[nodiscard]] absl::StatusOr<quota::PoolId> AddPool(const NewPool& options,
                                                      Turn& turn) {
    return pools_.AddPool(options, turn);
  }
  [[nodiscard]] absl::StatusOr<std::string> ResolveDevice(
      absl::string_view device) const;
  [[nodiscard]] absl::Status CheckResize(const std::string& device,
                                         const quota::Amount& size) const;
  [[nodiscard]] absl::StatusOr<v1::Change> ResizePool(const std::string& device,
                                                      const quota::Amount& size,
                                                      Turn& turn);
  [[nodiscard]] absl::StatusOr<uint64_t> DrainPool(const std::string& device,
                                                   bool draining, Turn& turn);
  [[nodiscard]] absl::Status StartReclaim(const v1::ReclaimRequest& request,
                                          StandingDemand::Done done,
                                          Turn& turn);

  // --- Stopping.
  void BeginDrain(absl::Duration deadline, Turn& turn);
  // Answers operators who wait, and refuses new ones.
  void RefuseWaiting(Turn& turn);

 private:
  // Whether all tenants, this one among them, can have what they may. Amounts
  // that come to nothing fit: stored ones of earlier brokers must not keep
  // this one from its start.
  [[nodiscard]] absl::Status CheckFits(const TenantPolicy& policy) const;
  // Tenants that fit, all of them at once.
  void Put(const std::vector<TenantPolicy>& tenants, Turn& turn);
  void SeeOff(const Tenant& tenant, quota::Nanoseconds wait, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  PoolKeeper& pools_;
  HostDesk& host_;
  Sharing& sharing_;
  RequestDesk& requests_;
  Reclaimer& reclaimer_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_OPERATOR_DESK_H_
