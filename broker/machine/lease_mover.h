#ifndef GMB_BROKER_MACHINE_LEASE_MOVER_H_
#define GMB_BROKER_MACHINE_LEASE_MOVER_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/machine/debt_desk.h"
#include "broker/machine/fact.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/records.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// Leases that leave the device (evict.cc) and come back (restore.cc), and who
// has them mapped. It alone writes where a lease is.
class LeaseMover {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    PoolKeeper& pools;
    HostDesk& host;
    DebtDesk& debts;
  };
  LeaseMover(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        pools_(below.pools),
        host_(below.host),
        debts_(below.debts) {}

  // --- Its users.
  void AddUser(Lease* lease, const Mapping& mapping);
  // A lease of another broker, once all of these have their users: what was
  // under way goes on.
  void GoOnWith(Lease* lease, LeaseRecord::Place place, Turn& turn);
  // It has all of the slabs that it was sent with its Grant.
  void MarkMapped(Lease* lease, const Session& session);
  void DropUser(Lease* lease, Session* session);
  // One of its users has left: its move may be over by that.
  void GoOn(Lease* lease, Turn& turn);
  // It has ended, and the device or the copier still works on it; or nothing
  // does any more.
  void Doom(Lease* lease, Turn& turn);
  void Forget(Lease* lease);

  // --- Steps. The gates of all who use it are closed by now.
  void StartEviction(Lease* lease, quota::Instant answer_by, bool may_terminate,
                     Turn& turn);
  void StartRestore(Lease* lease, Turn& turn);
  // The lease is on the device, after a failed move or because others have
  // brought it back: it is filled and mapped for the session. Whether that
  // could begin.
  bool MakeReady(Lease* lease, Session* session, Turn& turn);
  bool Refill(Lease* lease, Turn& turn);

  // --- Answers.
  void OnCopied(quota::LeaseId id, const absl::Status& status, Turn& turn);
  // The slabs of a lease that comes back.
  void OnPrepared(Lease* lease, const SlabsMade& made, Turn& turn);
  void OnUnmapped(Session* session, const v1::Unmapped& unmapped, Turn& turn);
  void OnMapped(Session* session, const v1::Mapped& mapped, Turn& turn);
  void CheckOverdue(Turn& turn);

 private:
  void AskToMove(Lease* lease, Mapping* mapping, quota::Instant answer_by,
                 Turn& turn);
  void TryEndEviction(Lease* lease, Turn& turn);
  void FillAndMap(Lease* lease, Turn& turn);
  void OnRestoreNotPrepared(Lease* lease, const SlabsMade& made, Turn& turn);
  void StayEvicted(Lease* lease, absl::string_view why, Turn& turn);
  void OnSharedMapped(Session* session, Lease* lease,
                      const absl::Status& failed, Turn& turn);
  void MapForUsers(Lease* lease, Turn& turn);
  void TryEndRestore(Lease* lease, Turn& turn);
  void UndoRestore(Lease* lease, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  PoolKeeper& pools_;
  HostDesk& host_;
  DebtDesk& debts_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_MOVER_H_
