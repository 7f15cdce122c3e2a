#ifndef GMB_BROKER_MACHINE_SESSION_H_
#define GMB_BROKER_MACHINE_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "broker/machine/answer_log.h"
#include "broker/machine/owned.h"
#include "broker/machine/owners.h"
#include "broker/machine/peer.h"
#include "broker/machine/session_gate.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// An Acquire that is not answered.
struct PendingAnswer {
  quota::RequestId request;  // the engine's
  // Its slabs are being made, or could not be: then it has ended. 0: it is not
  // granted yet.
  quota::LeaseId being_made;
};

// The talk with its client: answers, and requests that wait. The session
// desk's.
struct SessionTalk {
  uint64_t last_frame = 0;
  // Acquires that are not answered, by the client's request id.
  absl::btree_map<uint64_t, PendingAnswer> pending;
  AnswerLog answers;
  bool terminating = false;  // is sent SIGKILL
  bool unkillable = false;   // the broker may not send it
  bool dying = false;        // so lately that what it has is on its way back
  bool ended = false;        // and what it had comes back piece by piece
  // Of a session that an earlier broker had: requests whose Grant may have been
  // lost with it.
  absl::btree_map<uint64_t, quota::LeaseId> granted_before;
  // Of such a session: leases up to this id may have been released with it.
  uint64_t leases_before = 0;
  // And Drops up to this request id were carried out, as far as they could be.
  uint64_t drops_before = 0;
  bool greeting = true;  // its Welcome was not sent yet
  // The client's id of the last Drop that was carried out.
  uint64_t last_drop = 0;
};

// Its wait for what was taken. The waker's.
struct SessionWaking {
  // Restores that are not answered, by the client's request id, and until when
  // each waits.
  std::map<uint64_t, quota::Instant> restores;
  // Since when it waits: a Restore that comes soon after the last one's time was
  // over goes on with that one's wait. None: it does not.
  std::optional<quota::Instant> waits_since;
  quota::Instant lapsed_at;  // when the last one's time was over
  // The engine's request that stands for them.
  std::optional<quota::RequestId> restoring;
  uint32_t restore_attempts = 0;  // since the last answer
  // It is coming back: what it has on the device is not lent until then. None
  // once its gate has opened.
  quota::Instant coming_until;
  // Its gate has opened, and a scope has so long to go in: those who take all
  // that is parked would else take it in the moment in which it opens.
  quota::Instant let_in_until;
};

// Memory that its program could give back by itself. The reclaimer's.
struct SessionTrims {
  // So much, it says, it could give back at once.
  std::map<quota::PoolId, uint64_t> trimmable;
  std::optional<v1::Trim> trim;   // not answered yet
  quota::Instant trim_by;         // until when its answer is waited for
  uint64_t trim_given_bytes = 0;  // that it has released since it was asked
  // Until when what it says it could give back is not counted on: it gave less
  // than it had said.
  struct BackOff {
    quota::Instant until;
    uint64_t owed_bytes = 0;  // of what it was asked for
  };
  std::map<quota::PoolId, BackOff> trim_back_off;
  uint64_t last_trim = 0;
};

struct Session {
  [[nodiscard]] bool can_be_killed() const {
    return peer.pidfd != nullptr && !talk->unkillable;
  }

  const uint64_t id = 0;
  const PeerIdentity peer;
  const std::string token;
  const std::optional<quota::TenantId> tenant;  // none: an operator
  const absl::Time since;
  // None: an operator's. Its page is the client's too, and a copy of it has the
  // same.
  const Placed<SessionGate> gate;

  Owned<SessionTalk, SessionDesk> talk;
  Owned<std::string, Gates> group;  // empty: none
  // As its program says: why its gate is off. Empty: nothing said.
  Owned<std::string, Gates> never_lends;
  Owned<absl::btree_set<quota::LeaseId>, LeaseMover> leases;
  Owned<uint64_t, LeaseMover> leased_bytes;  // of them
  Owned<uint64_t, LeaseMover> last_move;     // of its Evicts and Maps
  Owned<SessionWaking, Waker> waking;
  Owned<SessionTrims, Reclaimer> trims;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_H_
