#ifndef GMB_BROKER_MACHINE_MACHINE_H_
#define GMB_BROKER_MACHINE_MACHINE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "broker/machine/peer.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "device/copy_job.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/planner.h"

namespace gmb::broker {

// The broker's state machine: sessions, leases, tenants, pools. Events go in,
// with the time at which they happen; effects come out, in the Turn.
//
// It has no thread, no lock and no clock, and makes no system call: the core
// guards it, and carries its effects out in their order.
//
// Refusals are absl::Status with an ErrorDetail (proto/error_status.h).
class Machine {
 public:
  Machine(const MachineOptions& options, uint64_t host_pool_bytes)
      : state_(options, host_pool_bytes) {}

  [[nodiscard]] const State& state() const { return state_; }

  // --- Pools, before the servers start.
  struct NewPool {
    device::DeviceInfo info;
    uint64_t baseline_bytes = 0;  // free on the device now
    bool has_copier = false;
    uint64_t target_bytes = 0;
    std::optional<quota::Amount> wanted = {};  // see PoolOptions
    uint64_t share_of_bytes = 0;               // likewise
    SlabPool::Options slabs;
  };
  absl::StatusOr<quota::PoolId> AddPool(const NewPool& options, Turn& turn);

  // --- Sessions.
  absl::StatusOr<Welcome> OpenSession(const PeerIdentity& peer,
                                      const std::string& token,
                                      std::unique_ptr<SessionGate>&& gate,
                                      Turn& turn);
  void CloseSession(uint64_t session, absl::string_view reason, Turn& turn);
  // Whose token it is; `pid` is the process that presents it.
  absl::StatusOr<Caller> Authenticate(absl::string_view token, pid_t pid) const;
  // Whether the session may have a stream; and that it has a new one.
  absl::Status CheckStream(uint64_t session) const;
  void OnStream(uint64_t session, Turn& turn);
  // One message of the client.
  void HandleMessage(uint64_t session, const v1::ClientMessage& message,
                     Turn& turn);

  // --- What became of effects.
  void OnDeviceResult(quota::PoolId pool, const DeviceResult& result,
                      Turn& turn);
  void OnCopied(quota::LeaseId id, const absl::Status& status, Turn& turn);

  // --- Time.
  void Tick(Turn& turn);
  // What is due now, and steps that others' events have made possible: the end
  // of every turn.
  void Settle(Turn& turn);
  // When the next Tick is due.
  quota::Instant NextDue(quota::Instant now) const;

  // --- Stopping.
  void BeginDrain(absl::Duration deadline, Turn& turn);
  // Answers operators who wait, and refuses new ones.
  void RefuseWaiting(Turn& turn);

  // --- Operators: see Core.
  absl::Status CheckTenant(const TenantPolicy& policy) const;
  absl::StatusOr<std::vector<v1::Change>> SetTenant(const TenantPolicy& policy,
                                                    Turn& turn);
  absl::Status CheckDeleteTenant(absl::string_view name) const;
  absl::Status DeleteTenant(absl::string_view name, Turn& turn);
  absl::Status StartDeparture(absl::string_view name, quota::Nanoseconds wait,
                              Departure::Done done, Turn& turn);
  void EndDeparture(absl::string_view name);
  void EndKept(absl::string_view tenant, Turn& turn);
  absl::StatusOr<uint32_t> DropLease(absl::string_view tenant,
                                     const std::string& name, Turn& turn);
  absl::StatusOr<TenantPolicy> GetPolicy(absl::string_view name) const;
  absl::StatusOr<quota::TenantId> IdOf(absl::string_view name) const;
  absl::StatusOr<std::string> ResolveDevice(absl::string_view device) const;
  absl::Status CheckResize(const std::string& device,
                           const quota::Amount& size) const;
  absl::StatusOr<v1::Change> ResizePool(const std::string& device,
                                        const quota::Amount& size, Turn& turn);
  absl::StatusOr<uint64_t> DrainPool(const std::string& device, bool draining,
                                     Turn& turn);
  absl::Status StartReclaim(const v1::ReclaimRequest& request,
                            StandingDemand::Done done, Turn& turn);

 private:
  friend class MachineProbe;  // tests

  std::vector<std::string> GreetingWarnings() const;

  // Requests.
  void Acquire(Session* session, uint64_t client_id, const v1::Acquire& acquire,
               Turn& turn);
  absl::StatusOr<PendingAcquire> CheckAcquire(const Session& session,
                                              uint64_t client_id,
                                              const v1::Acquire& acquire,
                                              quota::Instant now) const;
  // Puts a request to the engine.
  void Ask(const PendingAcquire& request, Turn& turn);
  void Release(Session* session, uint64_t client_id, const v1::Release& release,
               Turn& turn);
  // Messages without an answer; false when it is none of them.
  void HandleOnce(Session* session, const v1::ClientMessage& message,
                  Turn& turn);
  bool HandleNotice(Session* session, const v1::ClientMessage& message,
                    Turn& turn);
  void HandleRequest(Session* session, uint64_t id,
                     const v1::ClientMessage& message, Turn& turn);
  void MarkMapped(Session* session, const v1::Mapped& mapped, Turn& turn);
  void Cancel(Session* session, const v1::Cancel& cancel, Turn& turn);
  void ReportQuota(Session* session, uint64_t client_id, Turn& turn);
  Lease* FindLease(const Session& session, uint64_t lease);
  void Answer(Session* session, v1::BrokerMessage answer, Turn& turn);
  void Refuse(Session* session, uint64_t client_id, const absl::Status& status,
              Turn& turn);
  void Say(Session* session, v1::BrokerMessage message, Turn& turn);

  // Gates (gate.cc).
  static bool CanBeTaken(const Session& session, const Pool& pool,
                         v1::Contents contents);
  bool HasSoftCredit(quota::TenantId tenant) const;
  bool WouldFitSoft(const PendingAcquire& request) const;
  bool ReserveRoom(const Lease& lease);
  void Soften(Lease* lease, Turn& turn);
  void GiveUpRoom(Lease* lease);
  void SetGate(Session* session, uint64_t client_id, const v1::SetGate& message,
               Turn& turn);
  absl::Status TurnGateOn(Session* session, const std::string& group,
                          Turn& turn);
  absl::Status TurnGateOff(Session* session, Turn& turn);
  void LeaveGroup(Session* session, Turn& turn);
  void Seal(Session* session, uint64_t client_id, uint64_t lease_id,
            Turn& turn);

  // Copies ahead of need (backing.cc).
  void BackAhead(quota::Instant now, Turn& turn);
  bool BackingRound(quota::Instant now, uint64_t available);
  std::optional<quota::BackingStep> NextToBackAmong(
      const std::vector<quota::LeaseId>& leases, quota::Instant now,
      uint64_t available) const;
  void StartBacking(Lease* lease, uint64_t bytes, quota::Instant now,
                    Turn& turn);
  void OnBacked(Lease* lease, Turn& turn);

  // Shared leases (shared.cc, attach.cc).
  void EndName(quota::TenantId tenant, const PendingAcquire& request,
               Turn& turn);
  void Share(Lease* lease, Turn& turn);
  void Attach(Session* session, uint64_t client_id, const v1::Attach& attach,
              Turn& turn);
  void ServeAttaches(Lease* lease, Turn& turn);
  absl::Status AttachNow(Session* session, uint64_t client_id, Lease* lease,
                         Turn& turn);
  void GiveUpAttach(Session* session, uint64_t client_id,
                    const absl::Status& why, Turn& turn);
  void RefuseAttaches(const std::vector<PendingAttach>& waiting,
                      const absl::Status& status, Turn& turn);
  void OnBackForAttach(quota::LeaseId id, Turn& turn);
  void OnAttachDenied(const quota::Denied& denied, quota::LeaseId id,
                      Turn& turn);
  void OnSharedMapped(Session* session, Lease* lease,
                      const absl::Status& failed, Turn& turn);
  void ExpireAttaches(Turn& turn);
  void LeaveShared(Session* session);
  void Detach(Session* session, Lease* lease, bool reuse, Turn& turn);
  void Drop(Session* session, uint64_t client_id, const std::string& name,
            Turn& turn);
  absl::StatusOr<uint32_t> DropName(quota::TenantId tenant,
                                    const std::string& name, Turn& turn);
  void DropAll(quota::TenantId tenant, Turn& turn);
  void PublishAttached(absl::string_view kind, const Session& session,
                       const Lease& lease, Turn& turn) const;

  void AdvanceUsersOf(absl::Span<const quota::LeaseId> leases, Turn& turn);
  void AnswerUsers(Lease* lease, const absl::Status& status, Turn& turn);
  void AdvanceOthers(quota::RequestId request, Session* but_for, Turn& turn);

  // Leases that leave (evict.cc).
  void StartEviction(Lease* lease, quota::Instant answer_by, bool may_terminate,
                     Turn& turn);
  struct SlabRange {
    size_t first;
    size_t end;
  };
  // Between these slabs of the lease and its place in the host pool.
  void CopyContents(Lease* lease, device::CopyDirection direction,
                    SlabRange range, Turn& turn);
  void AskToMove(Lease* lease, Mapping* mapping, quota::Instant answer_by,
                 Turn& turn);
  void OnUnmapped(Session* session, const v1::Unmapped& unmapped, Turn& turn);
  void TryEndEviction(Lease* lease, Turn& turn);
  void OnUnresponsive(Session* session, Lease* lease, Turn& turn);
  void CheckOverdue(Turn& turn);
  void ForgetOwed(Turn& turn);
  void SoftenAll(quota::TenantId tenant, Turn& turn);
  void StartMapping(Lease* lease, Mapping* mapping, Turn& turn);
  void PublishMove(absl::string_view kind, const Lease& lease,
                   quota::Nanoseconds took, absl::string_view message,
                   Turn& turn) const;

  // Leases that come back (wake.cc: sessions; restore.cc: leases).
  void Restore(Session* session, uint64_t client_id, const v1::Restore& restore,
               Turn& turn);
  void AdvanceRestore(Session* session, Turn& turn);
  // What has to come back before the gates of these sessions can be opened.
  struct Away {
    bool moving = false;      // on the way in or out
    bool asked_back = false;  // shared, and another asks for it
    std::vector<quota::LeaseId> evicted;
    // Unmapped, or not filled; with the session that has it.
    std::vector<std::pair<Lease*, Session*>> unready;
  };
  Away AwayOf(const std::vector<Session*>& members) const;
  Session* AskerOf(const std::vector<Session*>& members,
                   quota::Instant now) const;
  void AskForRestore(const std::vector<Session*>& members,
                     std::vector<quota::LeaseId> evicted, Turn& turn);
  void AnswerMembers(Session* session, const absl::Status& status, Turn& turn);
  void Reopen(Session* session, Turn& turn);
  void AnswerRestores(Session* session, const absl::Status& status, Turn& turn);
  void OnRestored(const quota::Restored& restored, Turn& turn);
  void BringBack(const std::vector<quota::LeaseId>& leases, Turn& turn);
  bool WaitsOn(Session* session, const Turn& turn) const;
  void OnRestoreDenied(const quota::Denied& denied, Session* session,
                       Turn& turn);
  void StartRestore(Lease* lease, Turn& turn);
  void FillAndMap(Lease* lease, Turn& turn);
  void OnRestoreNotPrepared(Pool* pool, Lease* lease,
                            const std::vector<uint64_t>& not_created,
                            const absl::Status& status, Turn& turn);
  void OnMapped(Session* session, const v1::Mapped& mapped, Turn& turn);
  void TryEndRestore(Lease* lease, Turn& turn);
  void LoseContents(Lease* lease, Turn& turn);
  bool MakeReady(Lease* lease, Session* session, Turn& turn);
  bool Refill(Lease* lease, Turn& turn);
  void MapForUsers(Lease* lease, Turn& turn);
  void UndoRestore(Lease* lease, Turn& turn);
  void ExpireRestores(Turn& turn);

  // Who lacks bytes, and what is done about it (reclaim.cc).
  bool ServeShortage(Pool* pool, quota::Instant now, Turn& turn);
  bool CarryOut(const quota::Plan& plan, quota::Instant now, Pool* pool,
                Turn& turn);
  bool TakeVictim(const quota::Victim& victim, Turn& turn);
  bool TerminateUsers(const Lease& lease, Turn& turn);
  void StartPause(Lease* lease, quota::Instant until, Turn& turn);
  // Sessions whose pauses begin and end together, and the leases they are for.
  struct Pause {
    std::vector<Session*> sessions;
    std::vector<Lease*> leases;
  };
  Pause PauseOf(Session* session) const;
  void WithdrawPause(Session* session, const Pause& pause, bool needed,
                     Turn& turn);
  void CheckPause(Session* session, quota::Instant now, Turn& turn);
  void CheckPauses(Turn& turn);
  void ForgetPausesOf(const std::vector<Session*>& sessions, Turn& turn);
  void EndPause(const std::vector<Session*>& sessions, Turn& turn);
  bool Terminate(Session* session, Turn& turn);

  void RememberTrims(quota::RequestId request, const quota::Plan& plan,
                     Pool* pool) const;
  void CountTrimmed(Session* session, const Lease& lease);
  void AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                 Turn& turn);
  void OnTrimmed(Session* session, const v1::Trimmed& trimmed, Turn& turn);
  void SetTrimmable(Session* session, const v1::SetTrimmable& trimmable);
  quota::Instant ReclaimDue() const;
  void ForgetShortage(Pool* pool) const;
  void CheckDying(quota::Instant now);
  void WatchGates(quota::Instant now);
  void OnParked(const Session& session, quota::Instant now);
  void TouchLeases(const Session& session);
  bool LacksWithinGuarantee(quota::PoolId pool) const;

  // Tenants on their way out (departures.cc).
  absl::Status CheckStays(quota::TenantId tenant) const;
  void SeeOff(const Tenant& tenant, quota::Nanoseconds wait, Turn& turn);
  void CheckDepartures(quota::Instant now, Turn& turn);
  bool KillSessions(const Tenant& tenant, Turn& turn);
  bool HasMoving(quota::TenantId tenant) const;

  uint64_t StillWanted(const StandingDemand& demand) const;
  void AddStanding(StandingDemand demand, Turn& turn);
  void ServeStanding(quota::Instant now, Turn& turn);
  bool ServeOne(StandingDemand* standing, quota::Instant now, Turn& turn);
  bool CarryOutStanding(StandingDemand* standing, const quota::Demand& demand,
                        const Look::Found& found, uint64_t incoming,
                        Turn& turn);
  bool FindWhy(StandingDemand* standing, Turn& turn);
  void FinishStanding(StandingDemand* standing, std::vector<std::string> why,
                      Turn& turn);

  // The engine's answers.
  void Tell(const quota::Event& event, Turn& turn);
  void MarkChanged(const quota::Event& event);
  std::optional<quota::Refusal> TryToTell(const quota::HardChanged& event,
                                          Turn& turn);
  void Drain(Turn& turn);
  void React(const quota::Effect& effect, Turn& turn);
  void React(const Fact& fact, Turn& turn);
  void OnSessionEnded(const SessionEnded& ended, Turn& turn);
  void OnGranted(const quota::Granted& granted, Turn& turn);
  bool KeepsItsWord(const quota::Granted& granted, PendingAcquire* request,
                    Turn& turn);
  void OnDenied(const quota::Denied& denied, Turn& turn);
  absl::Status WhyDenied(const quota::Denied& denied,
                         const PendingAcquire& request) const;
  void OnWaiting(const quota::Waiting& waiting, Turn& turn);
  void OnBudgetChanged(const quota::BudgetChanged& changed, Turn& turn);

  // Leases and devices.
  void Announce(Lease* lease, Turn& turn);
  void FillGrant(const Lease& lease, v1::Grant* grant) const;
  void SendSlabs(Session* session, const Lease& lease, uint64_t request_id,
                 uint64_t move, Turn& turn);
  void EndLease(quota::LeaseId id, bool reuse, Turn& turn);
  void LeaveRoom(Lease* lease);
  // A lease's slabs, to serve its tenant for so long before they serve others.
  void GiveBack(Pool* pool, const Lease& lease, quota::Nanoseconds reuse_for,
                Turn& turn);
  void OnPrepared(Pool* pool, const PrepareJob& job, const DeviceResult& result,
                  Turn& turn);
  void OnPrepareFailed(Pool* pool, Lease* lease,
                       const std::vector<uint64_t>& not_created,
                       const absl::Status& status, Turn& turn);
  absl::Status WhyGivenUp(const Lease& lease) const;
  void AbandonLease(Pool* pool, Lease* lease,
                    const std::vector<uint64_t>& not_created, Turn& turn);
  void OnReading(Pool* pool, const DeviceReading& reading, Turn& turn);
  void WatchRise(Pool* pool, Turn& turn);
  void GrowPool(Pool* pool, Turn& turn);
  void TellUnreturned(Pool* pool, quota::TenantId tenant, uint64_t bytes,
                      Turn& turn);
  void TellMissing(Pool* pool, Turn& turn);
  void TellStuck(const Pool& pool, const DeviceReading& before, Turn& turn);
  void OnDeviceLost(Pool* pool, const absl::Status& status, Turn& turn);
  void Give(Pool* pool, DeviceJob job, Turn& turn);
  // Keeps every pool's ready slabs, float and audits going.
  void MaintainPools(Turn& turn);
  std::vector<pid_t> ClientProcesses(const Pool& pool) const;
  void SyncCapacities();
  bool MayRefill(const Pool& pool) const;

  v1::Change ChangeOf(quota::TenantId tenant, const Pool& pool) const;
  // An event about a tenant (may be null), to be published.
  v1::Event NewEvent(absl::string_view kind,
                     std::optional<quota::TenantId> tenant) const;

  State state_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_MACHINE_H_
