#ifndef GMB_BROKER_MACHINE_RECALLS_H_
#define GMB_BROKER_MACHINE_RECALLS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "broker/machine/lease.h"
#include "broker/machine/pool.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "quota/units.h"

namespace gmb::broker {

// Clients whose scopes wait for longer than one Restore ask again and again:
// between two of these they have waited on.
inline constexpr quota::Nanoseconds kAskedAgainWithin = std::chrono::seconds(1);

// The engine's Restores: in whose name leases were asked back, until the engine
// has answered.
class Recalls {
 public:
  Recalls(State& state, QuotaDesk& quota) : state_(state), quota_(quota) {}

  // `for_attach`: the one lease, by a session that does not have it yet.
  quota::RequestId AskBack(uint64_t session, std::vector<quota::LeaseId> leases,
                           quota::Instant deadline,
                           std::optional<quota::LeaseId> for_attach,
                           Turn& turn);
  // Somebody waits for it until then, who came later. One that names a shared
  // lease ends at its own time: others who need that lease ask for it then.
  void AskOn(quota::RequestId request, quota::Instant deadline, Turn& turn);
  // It is answered, or nobody waits for its answer. None: so it was already.
  std::optional<Returning> End(quota::RequestId request);
  // Nobody waits for it any more, and the engine is told.
  void Cancel(quota::RequestId request, Turn& turn);
  // Of a lease that others share from now on: its writer may wait for it.
  void Adopt(Lease* lease);
  // The Restore that asked for it has come to nothing, or the lease has ended.
  void Forget(Lease* lease);

  // Where the bytes that are on their way off the pool's device are all that its
  // first Restore lacks, that one begins to come back.
  void BeginReturns(const Pool& pool, Turn& turn);

  // Nobody asks for the lease for a while.
  void PutOff(quota::LeaseId id, Turn& turn);
  // Each wait for a lease whose time has come asks for it again.
  void EndPutOffs(Turn& turn);

 private:
  void SetAskedBack(Lease* lease, std::optional<quota::RequestId> request);

  State& state_;
  QuotaDesk& quota_;
};

// The Restore that waits for the lease, which is shared; null: none does.
[[nodiscard]] const Returning* ReturningOf(const State& state,
                                           const Lease& lease);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECALLS_H_
