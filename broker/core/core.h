#ifndef GMB_BROKER_CORE_CORE_H_
#define GMB_BROKER_CORE_CORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "broker/core/clock.h"
#include "broker/core/core_options.h"
#include "broker/core/departure.h"
#include "broker/core/event_bus.h"
#include "broker/core/journal.h"
#include "broker/core/keeper.h"
#include "broker/core/lease.h"
#include "broker/core/peer.h"
#include "broker/core/pool.h"
#include "broker/core/session.h"
#include "broker/core/session_groups.h"
#include "broker/core/session_table.h"
#include "broker/core/shared_names.h"
#include "broker/core/standing_demand.h"
#include "broker/core/tenant.h"
#include "broker/core/tenant_table.h"
#include "broker/hostpool/host_books.h"
#include "device/copier.h"
#include "device/host_pool.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "ipc/mutex.h"
#include "quota/backing.h"
#include "quota/engine.h"
#include "quota/planner.h"

namespace gmb::broker {

// The broker's state machine: sessions, leases, tenants, pools, behind one
// lock.
//
// Every public function is thread-safe and takes the lock once. Under it there
// is no system call, no CUDA call and no waiting; what is to be done outside
// leaves in order, as pushes into the queues of sessions (Outbox), devices
// (DeviceWorker) and the EventBus, and the queues are worked on after the lock
// is given up. So two events of one session, or one device, cannot overtake
// each other.
//
// Refusals are absl::Status with an ErrorDetail (proto/error_status.h).
class Core {
 public:
  // All of them must outlive the core.
  struct Deps {
    const Clock* clock;
    Keeper* keeper;
    Journal* journal;
    EventBus* events;
    device::HostPool* host_pool = nullptr;  // null: there is none
  };
  Core(const CoreOptions& options, const Deps& deps);
  // Stops the device workers. Sessions must be closed before.
  ~Core();

  // --- Set-up, before the servers start.
  absl::Status AddPool(PoolOptions options);
  // Called after the lock is given up whenever a Tick may be due earlier than
  // the last one said.
  void SetWakeTicker(std::function<void()> wake);

  // --- Sessions (handle server, session service).
  absl::StatusOr<OpenedSession> OpenSession(const PeerIdentity& peer);
  void CloseSession(uint64_t session, absl::string_view reason);
  // Whose token it is; `pid` is the process that presents it.
  absl::StatusOr<Caller> Authenticate(absl::string_view token, pid_t pid) const;
  // The outbox that now writes to `sink`; the caller tells it of finished
  // writes (OnWriteDone) and of the stream's end (DetachStream).
  absl::StatusOr<std::shared_ptr<Outbox>> AttachStream(
      uint64_t session, std::shared_ptr<StreamSink> sink);
  // One message of the client. Its answer goes to the outbox.
  void HandleMessage(uint64_t session, const v1::ClientMessage& message);

  // --- Time. Returns when the next call is due.
  quota::Instant Tick();

  // --- Stopping.
  void BeginDrain(absl::Duration deadline);
  [[nodiscard]] uint64_t TenantSessions() const;

  // --- Operators. Check says what Set would refuse; the caller stores the
  // change durably in between, and serialises operators' changes.
  absl::Status CheckTenant(const TenantPolicy& policy) const;
  absl::StatusOr<std::vector<v1::Change>> SetTenant(const TenantPolicy& policy);
  absl::Status CheckDeleteTenant(absl::string_view name) const;
  absl::Status DeleteTenant(absl::string_view name);
  // Sees a tenant's sessions off. Unless that is refused, `done` is called
  // once, by this call or later by another thread, with OK when the last one
  // has ended (then DeleteTenant, or EndDeparture, follows) or with why the
  // tenant stays.
  absl::Status StartDeparture(absl::string_view name, quota::Nanoseconds wait,
                              Departure::Done done);
  // It stays after all.
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

  // --- Reports.
  v1::GetStatusResponse Status() const;
  absl::StatusOr<v1::Tenant> TenantReport(absl::string_view name) const;
  v1::ListTenantsResponse Tenants() const;
  absl::StatusOr<v1::ListSessionsResponse> Sessions(
      absl::string_view tenant) const;
  absl::StatusOr<v1::ListLeasesResponse> Leases(absl::string_view tenant) const;
  absl::StatusOr<v1::ExplainResponse> Explain(
      absl::string_view tenant_name) const;
  v1::DiagnoseResponse Diagnose() const;

 private:
  struct Afterwards;  // what to do once the lock is given up

  // Sessions.
  absl::StatusOr<OpenedSession> OpenSessionAs(const PeerIdentity& peer,
                                              const std::string& token,
                                              std::unique_ptr<SessionGate> gate)
      ABSL_LOCKS_EXCLUDED(mu_);
  void RepeatMoves(uint64_t session) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::string> GreetingWarnings() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseSessionLocked(uint64_t session, absl::string_view reason,
                          Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Requests.
  void Acquire(Session* session, uint64_t client_id, const v1::Acquire& acquire,
               Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<PendingAcquire> CheckAcquire(const Session& session,
                                              uint64_t client_id,
                                              const v1::Acquire& acquire) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Puts a request to the engine.
  void Ask(const PendingAcquire& request, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(Session* session, uint64_t client_id, const v1::Release& release,
               Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Messages without an answer; false when it is none of them.
  void HandleOnce(Session* session, const v1::ClientMessage& message,
                  Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HandleNotice(Session* session, const v1::ClientMessage& message,
                    Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HandleRequest(Session* session, uint64_t id,
                     const v1::ClientMessage& message, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkMapped(Session* session, const v1::Mapped& mapped, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Cancel(Session* session, const v1::Cancel& cancel, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportQuota(Session* session, uint64_t client_id, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Lease* FindLease(const Session& session, uint64_t lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Answer(Session* session, v1::BrokerMessage answer, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Refuse(Session* session, uint64_t client_id, const absl::Status& status,
              Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Say(Session* session, v1::BrokerMessage message, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Gates (core_gate.cc).
  static bool CanBeTaken(const Session& session, const Pool& pool,
                         v1::Contents contents);
  bool WouldFitWithGate(const PendingAcquire& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReserveRoom(const Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Soften(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUpRoom(Lease* lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetGate(Session* session, uint64_t client_id, const v1::SetGate& message,
               Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TurnGateOn(Session* session, const std::string& group,
                          Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TurnGateOff(Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeaveGroup(Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Seal(Session* session, uint64_t client_id, uint64_t lease_id,
            Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsBacked(const Lease& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t BackedSlabs(const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t BackedBytes(const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Copies ahead of need (core_backing.cc).
  void BackAhead(quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartBacking(Lease* lease, uint64_t bytes, quota::Instant now,
                    Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnBacked(Lease* lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Shared leases (core_shared.cc, core_attach.cc).
  void EndName(quota::TenantId tenant, const PendingAcquire& request,
               Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Share(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Attach(Session* session, uint64_t client_id, const v1::Attach& attach,
              Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ServeAttaches(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AttachNow(Session* session, uint64_t client_id, Lease* lease,
                         Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUpAttach(Session* session, uint64_t client_id,
                    const absl::Status& why, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseAttaches(const std::vector<PendingAttach>& waiting,
                      const absl::Status& status, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnBackForAttach(quota::LeaseId id, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnAttachDenied(const quota::Denied& denied, quota::LeaseId id,
                      Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSharedMapped(Session* session, Lease* lease,
                      const absl::Status& failed, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireAttaches(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeaveShared(Session* session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Detach(Session* session, Lease* lease, bool reuse, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(Session* session, uint64_t client_id, const std::string& name,
            Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<uint32_t> DropName(quota::TenantId tenant,
                                    const std::string& name, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropAll(quota::TenantId tenant, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PublishAttached(absl::string_view kind, const Session& session,
                       const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Who uses a lease, one or several (core_users.cc).
  std::vector<Session*> UsersOf(const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  quota::Gate GateOver(const Lease& lease, quota::Instant now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdvanceUsers(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdvanceUsersOf(absl::Span<const quota::LeaseId> leases,
                      Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerUsers(Lease* lease, const absl::Status& status, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsAskedBack(const Lease& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdvanceOthers(quota::RequestId request, Session* but_for,
                     Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Leases that leave (core_evict.cc).
  void StartEviction(Lease* lease, quota::Instant answer_by, bool may_terminate,
                     Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  struct SlabRange {
    size_t first;
    size_t end;
  };
  // Between these slabs of the lease and its place in the host pool.
  void CopyContents(Lease* lease, device::CopyDirection direction,
                    SlabRange range, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnCopied(quota::LeaseId id, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AskToMove(Lease* lease, Mapping* mapping, quota::Instant answer_by,
                 Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnUnmapped(Session* session, const v1::Unmapped& unmapped,
                  Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TryEndEviction(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnUnresponsive(Session* session, Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckOverdue(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartMapping(Lease* lease, Mapping* mapping, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PublishMove(absl::string_view kind, const Lease& lease,
                   quota::Nanoseconds took, absl::string_view message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Leases that come back (core_restore.cc).
  void Restore(Session* session, uint64_t client_id, const v1::Restore& restore,
               Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdvanceRestore(Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What has to come back before the gates of these sessions can be opened.
  struct Away {
    bool moving = false;      // on the way in or out
    bool asked_back = false;  // shared, and another asks for it
    std::vector<quota::LeaseId> evicted;
    // Unmapped, or not filled; with the session that has it.
    std::vector<std::pair<Lease*, Session*>> unready;
  };
  Away AwayOf(const std::vector<Session*>& members) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskForRestore(const std::vector<Session*>& members,
                     std::vector<quota::LeaseId> evicted, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerMembers(Session* session, const absl::Status& status,
                     Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Reopen(Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerRestores(Session* session, const absl::Status& status,
                      Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRestored(const quota::Restored& restored, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRestoreDenied(const quota::Denied& denied, Session* session,
                       Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartRestore(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillAndMap(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WantsIn(Session* session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t RestoreAttempts(const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRestoreNotPrepared(Pool* pool, Lease* lease,
                            const std::vector<uint64_t>& not_created,
                            const absl::Status& status, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnMapped(Session* session, const v1::Mapped& mapped, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TryEndRestore(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseContents(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeReady(Lease* lease, Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Refill(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MapForUsers(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UndoRestore(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireRestores(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Who lacks bytes, and what is done about it (core_reclaim.cc).
  struct ReclaimRows {
    std::vector<quota::LeaseRow> leases;
    std::vector<quota::TenantRow> tenants;
  };
  quota::LeaseRow RowOf(const Lease& lease, quota::Instant now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ReclaimRows BuildRows(quota::Instant now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  quota::Plan PlanFor(const quota::Demand& demand, quota::Instant now,
                      std::vector<quota::LeaseVerdict>* why) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t IncomingBytes(quota::PoolId pool,
                         std::optional<quota::TenantId> tenant,
                         bool pausing) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<quota::Shortage> ShortageIn(quota::PoolId pool,
                                            bool pausing) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  quota::Demand DemandOf(const quota::Shortage& shortage,
                         quota::Instant now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Reclaim(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ServeShortage(Pool* pool, quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CarryOut(const quota::Plan& plan, quota::Instant now, Pool* pool,
                Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeVictim(const quota::Victim& victim, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TerminateUsers(const Lease& lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartPause(Lease* lease, quota::Instant until, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sessions whose pauses begin and end together, and the leases they are for.
  struct Pause {
    std::vector<Session*> sessions;
    std::vector<Lease*> leases;
  };
  Pause PauseOf(Session* session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WithdrawPause(Session* session, const Pause& pause, bool needed,
                     Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckPause(Session* session, quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckPauses(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndPause(const std::vector<Session*>& sessions, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Terminate(Session* session, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // What programs give back by themselves (core_trim.cc).
  void AddTrims(const Session& session, quota::Instant now,
                absl::Span<quota::LeaseRow> rows) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RememberTrims(quota::RequestId request, const quota::Plan& plan,
                     Pool* pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountTrimmed(Session* session, const Lease& lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                 Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnTrimmed(Session* session, const v1::Trimmed& trimmed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetTrimmable(Session* session, const v1::SetTrimmable& trimmable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  quota::Instant ReclaimDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Tenants on their way out (core_departures.cc).
  absl::Status CheckStays(quota::TenantId tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddDeparture(absl::string_view name, quota::Nanoseconds wait,
                            Departure::Done done, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SeeOff(const Tenant& tenant, quota::Nanoseconds wait, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckDepartures(quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool KillSessions(const Tenant& tenant, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasMoving(quota::TenantId tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // What operators want back (core_standing.cc).
  absl::Status AddReclaim(const v1::ReclaimRequest& request,
                          StandingDemand::Done done, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t StillWanted(const StandingDemand& demand) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddStanding(StandingDemand demand) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ServeStanding(quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ServeOne(StandingDemand* standing, quota::Instant now, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::string> VerdictSentences(
      const std::vector<quota::LeaseVerdict>& why,
      std::optional<quota::TenantId> tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishStanding(StandingDemand* standing,
                      const std::vector<quota::LeaseVerdict>& why,
                      Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The engine's answers.
  void Tell(const quota::Event& event, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Apply(const quota::Effects& effects, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnGranted(const quota::Granted& granted, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool KeepsItsWord(const quota::Granted& granted, PendingAcquire* request,
                    Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDenied(const quota::Denied& denied, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WhyDenied(const quota::Denied& denied,
                         const PendingAcquire& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnWaiting(const quota::Waiting& waiting, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnQuotaApplied(const quota::QuotaApplied& applied,
                      const quota::Effects& effects, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnBudgetChanged(const quota::BudgetChanged& changed, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Leases and devices.
  void Announce(Lease* lease, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillGrant(const Lease& lease, v1::Grant* grant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendSlabs(Session* session, const Lease& lease, uint64_t request_id,
                 uint64_t move) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndLease(quota::LeaseId id, bool reuse, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A lease's slabs, to serve its tenant for so long before they serve others.
  void GiveBack(Pool* pool, const Lease& lease, quota::Nanoseconds reuse_for,
                Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDeviceResult(quota::PoolId pool, DeviceResult result)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPrepared(Pool* pool, const PrepareJob& job, const DeviceResult& result,
                  Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPrepareFailed(Pool* pool, Lease* lease,
                       const std::vector<uint64_t>& not_created,
                       const absl::Status& status, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AbandonLease(Pool* pool, Lease* lease,
                    const std::vector<uint64_t>& not_created, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnReading(Pool* pool, const DeviceReading& reading, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellUnreturned(Pool* pool, quota::TenantId tenant, uint64_t bytes,
                      Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellMissing(Pool* pool, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellStuck(const Pool& pool, const DeviceReading& before)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDeviceLost(Pool* pool, const absl::Status& status, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Give(Pool* pool, DeviceJob job, Afterwards* after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Keeps every pool's ready slabs, float and audits going.
  void Maintain(Afterwards* after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<pid_t> ClientProcesses(const Pool& pool) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncCapacities() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayRefill(const Pool& pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  quota::Instant NextDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Tenants and reports.
  // Null when there is none; with an empty name, when there are several.
  Pool* FindPool(absl::string_view device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::QuotaView View(quota::TenantId tenant, const Pool& pool) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::Tenant Report(const Tenant& tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::PoolStatus Report(const Pool& pool) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::string> WaitFindings(const quota::Explanation& explanation)
      const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddFindings(const Tenant& tenant, const Pool& pool,
                   const quota::Explanation& explanation,
                   v1::ExplainResponse* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::Change ChangeOf(quota::TenantId tenant, const Pool& pool) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::HostPoolStatus ReportHostPool() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::SessionInfo Report(const Session& session) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::LeaseInfo Report(const Lease& lease) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Why the leases of others stay where they are while this tenant waits.
  void AddReclaimFindings(const Tenant& tenant, const Pool& pool,
                          v1::ExplainResponse* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Who waits to attach to its shared leases, for what, and what helps.
  void AddAttaching(const Tenant& tenant, v1::ExplainResponse* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string ExplainName(const SharedName& name,
                          v1::WaitingAttach* shown) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string ExplainReturn(const Lease& lease, v1::WaitingAttach* shown) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddReclaimDiagnosis(v1::DiagnoseResponse* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddUnreturnedDiagnosis(const Pool& pool,
                              v1::DiagnoseResponse* response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // An event about a tenant (may be null), stamped with the wall time.
  v1::Event NewEvent(absl::string_view kind,
                     std::optional<quota::TenantId> tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const CoreOptions options_;
  const Deps deps_;
  const absl::Time started_;
  std::function<void()> wake_ticker_;  // set once, before the servers start

  mutable ipc::Mutex mu_;
  quota::Engine engine_ ABSL_GUARDED_BY(mu_);
  std::map<quota::PoolId, std::unique_ptr<Pool>> pools_ ABSL_GUARDED_BY(mu_);
  TenantTable tenants_ ABSL_GUARDED_BY(mu_);
  SessionTable sessions_ ABSL_GUARDED_BY(mu_);
  SessionGroups groups_ ABSL_GUARDED_BY(mu_);
  SharedNames shared_names_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<quota::RequestId, PendingAcquire> pending_
      ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<quota::LeaseId, std::unique_ptr<Lease>> leases_
      ABSL_GUARDED_BY(mu_);
  uint64_t next_request_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t next_pool_ ABSL_GUARDED_BY(mu_) = 1;
  // What is where in the host pool.
  HostBooks host_books_ ABSL_GUARDED_BY(mu_);
  uint64_t last_copy_group_ ABSL_GUARDED_BY(mu_) = 0;
  // Leases being evicted or restored; sessions being paused; sessions whose
  // Restores are not answered; the engine's requests for those.
  std::set<quota::LeaseId> moving_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> pausing_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> waking_ ABSL_GUARDED_BY(mu_);
  // Sessions whose processes were killed, and when they should be dead.
  std::map<uint64_t, quota::Instant> terminating_ ABSL_GUARDED_BY(mu_);
  struct Returning {
    uint64_t session = 0;                      // that asks
    std::optional<quota::LeaseId> for_attach;  // and does not have it yet
  };
  absl::flat_hash_map<quota::RequestId, Returning> restoring_
      ABSL_GUARDED_BY(mu_);
  quota::BackingBudget backing_budget_ ABSL_GUARDED_BY(mu_);
  quota::Instant backing_at_ ABSL_GUARDED_BY(mu_);  // the next look
  // Shared leases that have not ended, dropped ones too.
  std::set<quota::LeaseId> shared_leases_ ABSL_GUARDED_BY(mu_);
  std::list<StandingDemand> standing_ ABSL_GUARDED_BY(mu_);
  std::map<quota::TenantId, Departure> departures_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Time> drain_until_ ABSL_GUARDED_BY(mu_);
  quota::Instant ticker_due_ ABSL_GUARDED_BY(mu_) = quota::Instant::Max();
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_CORE_H_
