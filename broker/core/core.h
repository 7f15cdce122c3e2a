#ifndef GMB_BROKER_CORE_CORE_H_
#define GMB_BROKER_CORE_CORE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "broker/core/clock.h"
#include "broker/core/couriers.h"
#include "broker/core/event_bus.h"
#include "broker/core/journal.h"
#include "broker/core/keeper.h"
#include "broker/core/opened_session.h"
#include "broker/core/outbox.h"
#include "broker/core/pool_options.h"
#include "broker/core/stall_watch.h"
#include "broker/core/stream_sink.h"
#include "broker/machine/adoption.h"
#include "broker/machine/departure.h"
#include "broker/machine/file_change.h"
#include "broker/machine/machine.h"
#include "broker/machine/peer.h"
#include "broker/machine/standing_demand.h"
#include "broker/machine/tenant.h"
#include "broker/report/sums.h"
#include "device/hostpool/host_pool.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/amount.h"
#include "quota/units.h"

namespace gmb::broker {

// The broker's one lock, around its state machine.
//
// Every public function is thread-safe and takes the lock once, for one turn of
// the machine. Under it there is no system call, no CUDA call and no waiting:
// the turn's effects enter the queues of sessions (Outbox), devices
// (DeviceWorker, Copier) and the EventBus in their order, and the queues are
// worked on after the lock is given up. So two events of one session, or one
// device, cannot overtake each other.
//
// Refusals are absl::Status with an ErrorDetail (proto/error_status.h).
class Core {
 public:
  // All of them must outlive the core.
  struct Deps {
    const Clock* clock;
    Keeper* keeper;
    EventBus* events;
    device::HostPool* host_pool = nullptr;  // null: there is none
    Journal* journal = nullptr;             // null: all ends with the broker
  };
  Core(const MachineOptions& options, const Deps& deps);
  // Stops the device workers. Sessions must be closed before.
  ~Core();

  // --- Set-up, before the servers start.
  absl::Status AddPool(PoolOptions options);
  // Takes over what another broker has left, after pools and tenants: once,
  // before any session is opened. `opened` has those that were adopted, for
  // their connections. Those that were not have ended.
  std::vector<NotAdopted> Adopt(const Adoption& adoption,
                                std::vector<OpenedSession>* opened);
  // Called after the lock is given up whenever a Tick may be due earlier than
  // the last one said.
  void SetWakeTicker(std::function<void()> wake);

  // --- Sessions (handle server, session service).
  absl::StatusOr<OpenedSession> OpenSession(const PeerIdentity& peer);
  // Its process was sent the Welcome: it is a session that a successor adopts.
  void OnWelcomed(uint64_t session);
  void CloseSession(uint64_t session, absl::string_view reason);
  // The owner of the token; `pid` is the process that presents it.
  absl::StatusOr<Caller> Authenticate(absl::string_view token, pid_t pid) const;
  // The outbox that now writes to `sink`; the caller tells it of finished
  // writes (OnWriteDone) and of the stream's end (DetachStream).
  absl::StatusOr<std::shared_ptr<Outbox>> AttachStream(
      uint64_t session, std::shared_ptr<StreamSink> sink);
  // One message of the client, whose answer goes to the outbox. How many leases
  // were looked at for it, beside those that it names.
  uint64_t HandleMessage(uint64_t session, const v1::ClientMessage& message);

  // --- Time. Returns when the next call is due.
  quota::Instant Tick();

  // --- Stopping.
  void BeginDrain(absl::Duration deadline);
  [[nodiscard]] uint64_t TenantSessions() const;

  // --- Operators. Check says what Set would refuse, Preview what it would take;
  // the caller stores the change durably in between, and serialises operators'
  // changes.
  absl::Status CheckTenant(const TenantPolicy& policy) const;
  std::vector<v1::Change> Preview(const TenantPolicy& policy) const;
  absl::StatusOr<std::vector<v1::Change>> SetTenant(const TenantPolicy& policy);
  // All of it in one turn, or nothing: then the error says of whom it is.
  // Returns the changes that were held back. Seeing off those that leave is the
  // caller's.
  absl::StatusOr<std::vector<HeldBack>> ApplyFile(const FileChange& change);
  absl::Status CheckFile(const FileChange& change) const;
  // Whether it may be deleted. From then on the tenant opens no session:
  // DeleteTenant, or EndDeparture, follows. False: it opened none before, so
  // that its departure is somebody else's.
  absl::StatusOr<bool> BeginDelete(absl::string_view name);
  absl::Status DeleteTenant(absl::string_view name);
  // Sees a tenant's sessions off. Unless that is refused, `done` is called
  // once, by this call or later by another thread, with OK when the last one
  // has ended (then DeleteTenant, or EndDeparture, follows) or with why the
  // tenant stays.
  absl::Status StartDeparture(absl::string_view name, quota::Nanoseconds wait,
                              Departure::Done done);
  // It stays after all. `done` is called with BAD_STATE, if it was not called.
  void EndDeparture(absl::string_view name);
  // Ends the shared leases that a tenant without sessions asked to be kept.
  void EndKept(absl::string_view tenant);
  // Nobody attaches to a shared lease any more. How many sessions have it
  // still. NO_SUCH_LEASE: it is none that anybody could attach to.
  absl::StatusOr<uint32_t> DropLease(absl::string_view tenant,
                                     const std::string& name);
  absl::StatusOr<TenantPolicy> GetPolicy(absl::string_view name) const;
  // Another one when the tenant of that name was deleted and made anew.
  absl::StatusOr<quota::TenantId> IdOf(absl::string_view name) const;
  // `device` may be empty when there is one pool. A share is of the
  // device's free memory at the start less the headroom.
  absl::StatusOr<std::string> ResolveDevice(absl::string_view device) const;
  absl::Status CheckResize(const std::string& device,
                           const quota::Amount& size) const;
  absl::StatusOr<v1::Change> ResizePool(const std::string& device,
                                        const quota::Amount& size);
  absl::StatusOr<uint64_t> DrainPool(const std::string& device, bool draining);
  // Unless it is refused, `done` is called once, by this call or later by
  // another thread, when what was asked for is back, or can not be had.
  absl::Status StartReclaim(const v1::ReclaimRequest& request,
                            StandingDemand::Done done);
  // Answers all of them, departures too, and refuses new ones: the broker is
  // stopping.
  void RefuseWaiting();

  // --- Reports (broker/report/report.h). Of a list, and of an explanation,
  // a page: the lock is taken anew for each few rows.
  v1::GetStatusResponse Status() const;
  absl::StatusOr<v1::Tenant> TenantReport(absl::string_view name) const;
  absl::StatusOr<v1::ListTenantsResponse> Tenants(
      const v1::ListTenantsRequest& request) const;
  absl::StatusOr<v1::ListSessionsResponse> Sessions(
      const v1::ListSessionsRequest& request) const;
  // BAD_STATE: there is none of a tenant with this id.
  absl::StatusOr<v1::SessionInfo> SessionReport(uint64_t id) const;
  absl::StatusOr<v1::ListLeasesResponse> Leases(
      const v1::ListLeasesRequest& request) const;
  absl::StatusOr<v1::ExplainResponse> Explain(
      const v1::ExplainRequest& request) const;
  v1::DiagnoseResponse Diagnose() const;
  // For metrics: sums over all of them, slice by slice too.
  report::SessionStates SessionStates() const;
  // By the tenant's name and the device.
  std::map<std::pair<std::string, std::string>, uint64_t> BackedBytes() const;

 private:
  class Entered;  // the lock, and a turn of the machine

  void OnDeviceResult(quota::PoolId pool, const DeviceResult& result);
  void OnCopied(quota::LeaseId lease, const absl::Status& status);
  void Run(Errands errands, bool wake_ticker) ABSL_LOCKS_EXCLUDED(mu_);

  const Deps deps_;
  const absl::Time started_;
  std::function<void()> wake_ticker_;  // set once, before the servers start

  mutable base::Mutex mu_;
  Machine machine_ ABSL_GUARDED_BY(mu_);
  Couriers couriers_ ABSL_GUARDED_BY(mu_);
  // Ids of devices, which is more than mu_ guards: none is added once their
  // threads are being stopped.
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  StallWatch stalls_ ABSL_GUARDED_BY(mu_);
  quota::Instant ticker_due_ ABSL_GUARDED_BY(mu_) = quota::Instant::Max();
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_CORE_H_
