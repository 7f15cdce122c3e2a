#ifndef GMB_BROKER_MACHINE_MACHINE_H_
#define GMB_BROKER_MACHINE_MACHINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/backer.h"
#include "broker/machine/debt_desk.h"
#include "broker/machine/gatekeeper.h"
#include "broker/machine/gates.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease_desk.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/lookout.h"
#include "broker/machine/operator_desk.h"
#include "broker/machine/peer.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/recalls.h"
#include "broker/machine/reclaimer.h"
#include "broker/machine/request_desk.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/sharing.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "broker/machine/waker.h"
#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// The broker's state machine: sessions, leases, tenants, pools. Events go in,
// with the time at which they happen; effects come out, in the Turn.
//
// It has no thread, no lock and no clock, and makes no system call: the core
// guards it, and carries its effects out in their order. Its state is changed
// by owners, each of which may call those that are declared before it; what
// goes the other way is a fact (settle.cc).
//
// Refusals are absl::Status with an ErrorDetail (proto/error_status.h).
class Machine {
 public:
  Machine(const MachineOptions& options, uint64_t host_pool_bytes);
  // A machine of its own, but for the pages of gates and whom operators'
  // answers go to.
  Machine(const Machine& other);
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] SessionDesk& sessions() { return sessions_; }
  [[nodiscard]] const SessionDesk& sessions() const { return sessions_; }
  [[nodiscard]] DebtDesk& debts() { return debts_; }
  [[nodiscard]] OperatorDesk& operators() { return operators_; }
  [[nodiscard]] const OperatorDesk& operators() const { return operators_; }

  // Takes over what another broker has left, once pools and tenants are there.
  // Sessions that cannot be adopted have ended.
  [[nodiscard]] std::vector<NotAdopted> Adopt(const Adoption& adoption,
                                              Turn& turn);

  // --- Sessions.
  [[nodiscard]] absl::StatusOr<Welcome> OpenSession(
      const PeerIdentity& peer, const std::string& token,
      std::unique_ptr<SessionGate>&& gate, Turn& turn);
  // Its memory comes back at once or, if that is very much, in this turn and
  // those that follow. Nothing more is done for it.
  void CloseSession(uint64_t session, absl::string_view reason, Turn& turn);
  // One message of the client.
  void HandleMessage(uint64_t session, const v1::ClientMessage& message,
                     Turn& turn);

  // --- Results of effects.
  void OnDeviceResult(quota::PoolId pool, const DeviceResult& result,
                      Turn& turn);
  void OnCopied(quota::LeaseId id, const absl::Status& status, Turn& turn);

  // --- Time.
  void Tick(Turn& turn);
  // The end of every turn: what follows from it, then what is due.
  void Settle(Turn& turn);
  // When the next Tick is due.
  [[nodiscard]] quota::Instant NextDue(quota::Instant now) const;

 private:
  friend class MachineProbe;  // tests

  bool HandleNotice(Session* session, const v1::ClientMessage& message,
                    Turn& turn);
  void HandleRequest(Session* session, uint64_t id,
                     const v1::ClientMessage& message, Turn& turn);
  void Release(Session* session, uint64_t client_id, const v1::Release& release,
               Turn& turn);
  // Nothing leads to it any more. The shared leases that it had.
  std::vector<quota::LeaseId> Forget(Session* session);
  // Some of what ended sessions still have.
  void EndWhatIsLeft(Turn& turn);
  // Until nothing is queued.
  void Drain(Turn& turn);
  void React(const quota::Effect& effect, Turn& turn);
  void React(const Fact& fact, Turn& turn);
  void DoWhatIsDue(Turn& turn);
  void Reclaim(Turn& turn);

  State state_;
  // From the bottom to the top.
  IndexKeeper index_{state_};
  QuotaDesk quota_{state_, index_};
  SessionDesk sessions_{state_, index_};
  Gates gates_{state_};
  PoolKeeper pools_{state_, quota_};
  Lookout lookout_{state_};
  HostDesk host_{state_, {index_, quota_}};
  Backer backer_{state_, {lookout_, host_}};
  DebtDesk debts_{state_, {index_, quota_, sessions_, host_}};
  LeaseMover mover_{state_, {index_, quota_, sessions_, pools_, host_, debts_}};
  LeaseDesk leases_{state_, {index_, quota_, sessions_, pools_, host_, mover_}};
  Recalls recalls_{state_, quota_};
  Sharing sharing_{
      state_, {index_, quota_, sessions_, host_, mover_, leases_, recalls_}};
  RequestDesk requests_{state_, {quota_, sessions_, host_, leases_, sharing_}};
  Waker waker_{state_, {sessions_, gates_, mover_, recalls_, sharing_}};
  Gatekeeper gatekeeper_{state_,
                         {index_, quota_, sessions_, gates_, lookout_, host_,
                          mover_, sharing_, waker_}};
  Reclaimer reclaimer_{
      state_,
      {index_, sessions_, gates_, lookout_, host_, mover_, gatekeeper_}};
  OperatorDesk operators_{state_,
                          {index_, quota_, sessions_, pools_, host_, sharing_,
                           requests_, reclaimer_}};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_MACHINE_H_
