#ifndef GMB_BROKER_MACHINE_RECLAIMER_H_
#define GMB_BROKER_MACHINE_RECLAIMER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/gatekeeper.h"
#include "broker/machine/gates.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/look.h"
#include "broker/machine/lookout.h"
#include "broker/machine/pool.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/standing_demand.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/planner.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// Bytes that are wanted back: for requests that lack them (reclaim.cc), for
// operators (standing.cc), by programs that are asked to trim (trim.cc).
class Reclaimer {
 public:
  struct Below {
    IndexKeeper& index;
    SessionDesk& sessions;
    Gates& gates;
    Lookout& lookout;
    HostDesk& host;
    LeaseMover& mover;
    Gatekeeper& gatekeeper;
  };
  Reclaimer(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        sessions_(below.sessions),
        gates_(below.gates),
        lookout_(below.lookout),
        host_(below.host),
        mover_(below.mover),
        gatekeeper_(below.gatekeeper) {}

  // One round: whether something was taken, and the next request may lack bytes
  // beside it.
  bool ServeShortage(Pool* pool, quota::Instant now, Turn& turn);
  // A request lacks bytes that did not when it was looked at last.
  void NoticeShortages(quota::Instant now);
  // Sessions that were at work when somebody lacked bytes, and have parked.
  void WatchGates(quota::Instant now);

  // --- Operators, and room that was made smaller.
  absl::Status StartReclaim(const v1::ReclaimRequest& request,
                            StandingDemand::Done done, Turn& turn);
  // Each in the place of an older one of the same limit, pool or deletion.
  void AddStanding(std::vector<StandingDemand> demands, Turn& turn);
  void ServeStanding(quota::Instant now, Turn& turn);
  // Of a tenant that is no more; of all, who are answered with `why`.
  void EndStandingOf(quota::TenantId tenant, Turn& turn);
  void EndStanding(const absl::Status& why, Turn& turn);

  // --- Trims.
  // The session has ended.
  void Forget(const Session& session);
  // Of a lease that its session gives back.
  void CountTrimmed(Session* session, const Lease& lease);
  void OnTrimmed(Session* session, const v1::Trimmed& trimmed, Turn& turn);
  void SetTrimmable(Session* session, const v1::SetTrimmable& trimmable);

 private:
  [[nodiscard]] Look::Found MakePlan(Look* look, const quota::Demand& demand,
                                     quota::Instant now);
  // Whether a victim was taken at once.
  bool CarryOut(const quota::Plan& plan, quota::Instant now, Pool* pool,
                Turn& turn);
  bool TakeVictim(const quota::Victim& victim, Turn& turn);
  bool TerminateUsers(const Lease& lease, Turn& turn);
  void ForgetShortage(Pool* pool);
  // `leases`: so many may be looked at still.
  void OnParked(const Session& session, quota::Instant now, size_t* leases);
  bool ServeOne(StandingDemand* standing, quota::Instant now, Turn& turn);
  bool CarryOutStanding(StandingDemand* standing, const quota::Demand& demand,
                        const Look::Found& found, uint64_t incoming,
                        Turn& turn);
  bool FindWhy(StandingDemand* standing, Turn& turn);
  void FinishStanding(StandingDemand* standing, std::vector<std::string> why,
                      Turn& turn);
  void RememberTrims(quota::RequestId request, const quota::Plan& plan,
                     Pool* pool);
  void ForgetTrims(Pool* pool);
  void AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                 Turn& turn);

  State& state_;
  IndexKeeper& index_;
  SessionDesk& sessions_;
  Gates& gates_;
  Lookout& lookout_;
  HostDesk& host_;
  LeaseMover& mover_;
  Gatekeeper& gatekeeper_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECLAIMER_H_
