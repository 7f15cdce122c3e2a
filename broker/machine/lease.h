#ifndef GMB_BROKER_MACHINE_LEASE_H_
#define GMB_BROKER_MACHINE_LEASE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/machine/slab.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// An Acquire that is not answered yet.
struct PendingAcquire {
  quota::RequestId id;  // the engine's name for it
  uint64_t session = 0;
  uint64_t client_id = 0;  // the client's request id
  quota::PoolId pool;
  uint64_t bytes = 0;
  v1::Contents contents = v1::PRESERVE;
  quota::Instant asked;
  quota::Instant deadline;
  uint32_t attempts = 0;  // grants whose slabs could not be created
  bool told_waiting = false;
  bool cancelled = false;  // by its client, while the slabs were being made
  // Its bytes could be taken back by force: asked for as soft ones.
  bool soft = false;
  std::string share_as;  // empty: it is not to be shared
  bool keep = false;
};

// Where a granted lease's bytes are. Beside it stands the engine's own view:
// evicted from kEvicted on, resident again from the moment a restore is
// granted.
enum class Residence : uint8_t {
  kResident,
  kEvicting,   // being copied out and unmapped
  kEvicted,    // it has no slabs; contents to be kept are in the host pool
  kRestoring,  // slabs are being made, filled and mapped
};

// One session's view of a lease.
struct Mapping {
  uint64_t session = 0;
  // The client has nothing of it mapped. Also of a resident lease, whose
  // eviction failed after that: the next restore maps it again.
  bool unmapped = false;
  // The newest Evict or Map; `asked` while it is not answered.
  uint64_t move = 0;
  bool asked = false;
  quota::Instant answer_by = quota::Instant::Max();
  bool overdue = false;   // the client did not answer in time
  uint32_t refusals = 0;  // Evicts that the client could not follow, in a row
};

// What the ReclaimIndex, its only writer, has counted of a lease.
struct ReclaimEntry {
  bool listed = false;   // a demand may take it some time
  bool comes = false;    // on its way back
  bool awaits = false;   // a pause, and will come then
  bool overdue = false;  // a client has not answered in time
  quota::Instant answer_by = quota::Instant::Max();

  friend bool operator==(const ReclaimEntry&, const ReclaimEntry&) = default;
};

struct Lease {
  quota::LeaseId id;
  PendingAcquire request;  // of the session that holds it; if shared, wrote it
  quota::TenantId tenant;
  uint64_t bytes = 0;
  std::vector<Slab> slabs;  // in address order once all are there
  v1::LeaseInfo::State state = v1::LeaseInfo::CREATING;
  absl::Time since;
  // A ready slab was destroyed to make room for what could not be created.
  bool gave_up_ready = false;
  // It has ended, but the device or the copier still works on it.
  bool doomed = false;
  bool preparing = false;  // its slabs are being created

  // --- Reclaim (docs/reclaim.md).
  Residence residence = Residence::kResident;
  bool sealed = false;
  // Its session's. Of a shared lease, of each that is attached: none, if it
  // was asked to be kept.
  std::vector<Mapping> mappings;
  // Its restore failed after its slabs were being filled: the contents are in
  // the host pool alone, until the next restore fills them again.
  bool torn = false;
  // Whether who does not answer in time may be killed.
  bool may_terminate = false;
  // Copies in flight, all of one group, and the first error among them.
  uint32_t copies = 0;
  uint64_t copy_group = 0;
  absl::Status moved;
  // Waits for its session's pause to take effect.
  bool awaits_pause = false;
  quota::Instant resident_since;
  quota::Instant move_started;
  quota::Nanoseconds restore_time{0};  // of the last one
  quota::Instant back_off_until;
  // Of the gate, when the host copy was made; and how many slabs, from the
  // first on, have one that was made ahead of need (0 once all of them have).
  uint64_t backed_epoch = 0;
  uint32_t backed_slabs = 0;
  uint32_t backing_slabs = 0;  // being copied ahead
  ReclaimEntry reclaim;

  // --- Shared leases (docs/shared.md).
  // Sealed, and others may be attached: it is no session's own any more.
  bool shared = false;
  bool dropped = false;  // nobody attaches to it any more
  // The engine's Restore that last asked for it; who else needs it waits. Set
  // by AskedBack.
  std::optional<quota::RequestId> asked_back;
  // Of one that is kept: since when nobody is attached.
  quota::Instant unused_since;

  [[nodiscard]] bool asked() const {
    return std::any_of(mappings.begin(), mappings.end(),
                       [](const Mapping& m) { return m.asked; });
  }
  [[nodiscard]] bool overdue() const {
    return std::any_of(mappings.begin(), mappings.end(),
                       [](const Mapping& m) { return m.overdue; });
  }
  // Whether somebody was.
  bool ForgetOverdue() {
    bool any = false;
    for (Mapping& mapping : mappings)
      any |= std::exchange(mapping.overdue, false);
    return any;
  }
  // Null: that session is not attached.
  [[nodiscard]] Mapping* MappingOf(uint64_t session) {
    const auto it =
        std::find_if(mappings.begin(), mappings.end(),
                     [&](const Mapping& m) { return m.session == session; });
    return it == mappings.end() ? nullptr : &*it;
  }
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_H_
