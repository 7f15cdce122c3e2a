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
#include "broker/machine/owned.h"
#include "broker/machine/owners.h"
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
  uint32_t put_offs = 0;
  // It is put off: the engine does not have it until then.
  std::optional<quota::Instant> ask_again_at = std::nullopt;
  bool told_waiting = false;
  // Its bytes could be taken back by force: asked for as soft ones.
  bool soft = false;
  std::string share_as;  // empty: it is not to be shared
  bool keep = false;
  bool ahead_of_need = false;  // its refusal is nobody's
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
  uint64_t request = 0;  // the client's Acquire, or Attach
  bool mapped = false;   // it has said, once, that it has the slabs
  // The client has nothing of it mapped. Also of a resident lease, whose
  // eviction failed after that: the next restore maps it again.
  bool unmapped = false;
  // The newest Evict or Map; `asked` while it is not answered.
  uint64_t move = 0;
  bool asked = false;
  quota::Instant answer_by = quota::Instant::Max();
  bool overdue = false;   // the client did not answer in time
  uint32_t refusals = 0;  // Evicts that the client could not follow, in a row
  quota::Instant refused_since{};  // the first of them

  // A client that says again and again that it cannot unmap is as one that says
  // nothing.
  static constexpr uint32_t kMostRefusals = 2;
  [[nodiscard]] bool refuses() const { return refusals >= kMostRefusals; }
};

// A lease as the ReclaimIndex, the only writer, has counted it.
struct ReclaimEntry {
  bool listed = false;   // a demand may take it some time
  bool comes = false;    // on its way back
  bool awaits = false;   // a pause, and will come then
  bool overdue = false;  // a client has not answered in time, or refuses
  bool own = false;      // of one session alone, which has it
  quota::Instant answer_by = quota::Instant::Max();

  friend bool operator==(const ReclaimEntry&, const ReclaimEntry&) = default;
};

// Its slabs. The pool keeper's.
struct LeaseSlabs {
  std::vector<Slab> slabs;  // in address order once all are there
  bool preparing = false;   // they are being created
  // They are being made to be filled, or were and are being filled: see
  // PacedCreates.
  bool filling = false;
  // A ready slab was destroyed to make room for what could not be created.
  bool gave_up_ready = false;
};

// From its grant to its end. The lease desk's.
struct LeaseLife {
  v1::LeaseInfo::State state = v1::LeaseInfo::CREATING;
  absl::Time since;
  // It has ended, but the device or the copier still works on it.
  bool doomed = false;
  bool cancelled = false;  // by its client, while its slabs were being made
};

// Its copy in the host pool. The host desk's.
struct LeaseCopy {
  // Copies in flight, all of one group, and the first error of the move that
  // they belong to.
  uint32_t copies = 0;
  bool copying_in = false;  // they fill its slabs
  uint64_t copy_group = 0;
  absl::Status moved;
  // After a failed step it is left alone until then.
  quota::Instant back_off_until;
  // Of the gate, when the host copy was made; and how many slabs, from the
  // first on, have one that was made ahead of need (0 once all of them have).
  uint64_t backed_epoch = 0;
  uint32_t backed_slabs = 0;
  uint32_t backing_slabs = 0;  // being copied ahead
  quota::Instant backing_started;
};

// Where it is, and who has it mapped (docs/reclaim.md). The mover's.
struct LeaseMove {
  Residence residence = Residence::kResident;
  // Its session's. Of a shared lease, of each that is attached: none, if it
  // was asked to be kept.
  std::vector<Mapping> mappings;
  // Its restore failed after its slabs were being filled: the contents are in
  // the host pool alone, until the next restore fills them again.
  bool torn = false;
  // Whether who does not answer in time may be killed.
  bool may_terminate = false;
  quota::Instant resident_since;
  quota::Instant move_started;
  quota::Nanoseconds restore_time{0};  // of the last one

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

// The facts that Sharing knows of it (docs/shared.md).
struct LeaseSharing {
  bool sealed = false;
  // Sealed, and others may be attached: it is no session's own any more.
  bool shared = false;
  bool dropped = false;  // nobody attaches to it any more
  // Of one that is kept: since when nobody is attached.
  quota::Instant unused_since;
  // Exported (docs/shared.md): others attach by this key. Empty: it is not. It
  // is shared then, without a seal or a name.
  std::string export_key;
};

struct Lease {
  const quota::LeaseId id;
  // Of the session that holds it; if shared, wrote it.
  const PendingAcquire request;
  const quota::TenantId tenant;
  const uint64_t bytes = 0;

  Owned<LeaseSlabs, PoolKeeper> held;
  Owned<LeaseLife, LeaseDesk> life;
  Owned<LeaseCopy, HostDesk> copy;
  Owned<LeaseMove, LeaseMover> move;
  Owned<LeaseSharing, Sharing> sharing;
  // Waits for a pause of its users to take effect.
  Owned<bool, Gatekeeper> awaits_pause;
  // The engine's Restore that last asked for it; others that need it wait.
  Owned<std::optional<quota::RequestId>, Recalls> asked_back;
  // A silent keeper kept its slabs from being made again: nobody asks for it
  // until that may have changed.
  Owned<bool, Recalls> put_off;
  Owned<ReclaimEntry, ReclaimIndex> reclaim;

  // Says what becomes of its contents when memory is needed. An exported lease
  // never moves, since other processes may touch it at any time.
  [[nodiscard]] v1::Contents contents() const {
    return exported() ? v1::RESIDENT : request.contents;
  }
  [[nodiscard]] bool exported() const { return !sharing->export_key.empty(); }
  [[nodiscard]] bool asked() const {
    return std::any_of(move->mappings.begin(), move->mappings.end(),
                       [](const Mapping& m) { return m.asked; });
  }
  [[nodiscard]] bool overdue() const {
    return std::any_of(move->mappings.begin(), move->mappings.end(),
                       [](const Mapping& m) { return m.overdue; });
  }
  // A client of it refused its last Evicts; nothing is asked of it now.
  [[nodiscard]] bool refused() const {
    return move->residence == Residence::kResident && !asked() &&
           std::any_of(move->mappings.begin(), move->mappings.end(),
                       [](const Mapping& m) { return m.refuses(); });
  }
  // Null: that session is not attached.
  [[nodiscard]] const Mapping* MappingOf(uint64_t session) const {
    const auto it =
        std::find_if(move->mappings.begin(), move->mappings.end(),
                     [&](const Mapping& m) { return m.session == session; });
    return it == move->mappings.end() ? nullptr : &*it;
  }
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_H_
