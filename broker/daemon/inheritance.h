#ifndef GMB_BROKER_DAEMON_INHERITANCE_H_
#define GMB_BROKER_DAEMON_INHERITANCE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/patience.h"
#include "base/unique_fd.h"
#include "broker/core/clock.h"
#include "broker/daemon/host_pool_setup.h"
#include "broker/daemon/pool_setup.h"
#include "broker/daemon/record_in_hand.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/kept_sessions.h"
#include "broker/keeping/left_behind.h"
#include "broker/keeping/remote_keeper.h"
#include "broker/machine/adoption.h"
#include "broker/machine/origin.h"

namespace gmb::broker {

// The process at the other end of a kept connection.
struct KeptPeer {
  base::UniqueFd socket;
  SharedFd pidfd;
  Origin origin = Origin::kShared;
  std::string tenant_directory;
  pid_t pid = 0;
};

// The things that the last broker has left, until this one has taken them over
// piece by piece. The record that is in hand is marked.
//
// In this order: AdoptSlabs, then the devices and the host pool take what was
// left, TakeAdoption, PeerOf of each session that goes on, DropTheRest.
class Inheritance {
 public:
  // All of them outlive it.
  struct Deps {
    KeeperClient* client;
    KeptSessions* sessions;
    RecordInHand* in_hand;
    const Clock* clock;
  };
  // `since`: when the takeover began.
  Inheritance(const Deps& deps, LeftBehind left, absl::Time since)
      : deps_(deps), left_(std::move(left)), since_(since) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }
  [[nodiscard]] const LeftBehind& left() const { return left_; }

  // Has `slabs` go on with those of leases, and gives back slabs of no lease.
  absl::Status AdoptSlabs(RemoteKeeper* slabs);
  // Above all that were given out.
  [[nodiscard]] SlabId next_slab() const { return next_slab_; }
  // Of leases, by device.
  [[nodiscard]] KeptSlabs SlabsByDevice() const;

  // For a host pool as `asked`. One that was left and has contents keeps the
  // size that it had, and so does any one where nobody has set a size.
  [[nodiscard]] absl::StatusOr<HostMemory> HostMemoryFor(
      HostMemory asked) const;
  // The host pool's memory, which is the caller's to keep from now on; null:
  // there was none.
  [[nodiscard]] SharedFd TakeHostMemory() {
    return std::exchange(left_.host, nullptr);
  }

  // With the slabs as the devices have imported them. Sessions whose gate page
  // cannot be mapped are left out, and logged.
  [[nodiscard]] Adoption TakeAdoption(ImportedSlabs imported);
  // Of a session that is adopted, until DropTheRest.
  [[nodiscard]] absl::StatusOr<KeptPeer> PeerOf(uint64_t session);
  // Hangs up on sessions that are not among the adopted ones, and removes
  // whatever nobody took over.
  void DropTheRest(const std::set<uint64_t>& adopted,
                   const std::vector<NotAdopted>& not_adopted);

  // Sessions of the last broker that could not go on with this one. Any thread.
  [[nodiscard]] uint64_t not_adopted() const { return not_adopted_; }

 private:
  void CountNotAdopted(uint64_t session, absl::string_view why);
  void HangUp(uint64_t session, const KeptSession& kept) const;

  const Deps deps_;
  LeftBehind left_;
  const absl::Time since_;
  // For calls whose refusal would end a session.
  base::Patience patience_{absl::Seconds(1)};
  std::set<SlabId> imported_;
  std::map<uint64_t, KeptPeer> peers_;  // of sessions; their sockets in left_
  SlabId next_slab_ = 1;
  std::atomic<uint64_t> not_adopted_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_INHERITANCE_H_
