#ifndef GMB_BROKER_MACHINE_ADOPTION_H_
#define GMB_BROKER_MACHINE_ADOPTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/unique_fd.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"
#include "ipc/gate_page.h"

// The things that a broker takes over from the last one (docs/handover.md).
namespace gmb::broker {

// A session whose connection was kept.
struct AdoptedSession {
  SessionRecord record;
  std::shared_ptr<const base::UniqueFd> pidfd;  // null: it has none
  std::shared_ptr<ipc::GateCells> gate;         // its page, mapped anew
};

struct Adoption {
  HeadRecord head;
  std::vector<PoolRecord> pools;
  std::vector<AdoptedSession> sessions;
  std::vector<LeaseRecord> leases;
  // The slabs of these leases, as this broker's devices have imported them.
  absl::flat_hash_map<SlabId, Slab> slabs;
  // Told which record is in hand (a session of id 0: none), so that a successor
  // knows the one that ended this process. May be null.
  std::function<void(const SessionRecord&)> takes_session = nullptr;
  std::function<void(const LeaseRecord&)> takes_lease = nullptr;
};

// A session that was not: it has ended, and so have its leases. Its connection
// is to be hung up.
struct NotAdopted {
  uint64_t session = 0;  // 0: leases that were kept without one
  std::string why;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ADOPTION_H_
