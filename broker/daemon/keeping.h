#ifndef GMB_BROKER_DAEMON_KEEPING_H_
#define GMB_BROKER_DAEMON_KEEPING_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/patience.h"
#include "base/unique_fd.h"
#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/daemon/host_pool_setup.h"
#include "broker/daemon/memory_error.h"
#include "broker/daemon/out_of_memory.h"
#include "broker/daemon/pool_setup.h"
#include "broker/keeping/adoption_marks.h"
#include "broker/keeping/copy_mark.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/keeper_watch.h"
#include "broker/keeping/kept_sessions.h"
#include "broker/keeping/left_behind.h"
#include "broker/keeping/record_journal.h"
#include "broker/keeping/record_parts.h"
#include "broker/keeping/remote_keeper.h"
#include "broker/machine/adoption.h"
#include "broker/machine/origin.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// The process at the other end of a kept connection.
struct KeptPeer {
  base::UniqueFd socket;
  SharedFd pidfd;
  Origin origin = Origin::kShared;
  std::string tenant_directory;
  pid_t pid = 0;
};

// The parts that a broker with a keeper has and one without has not: its
// keeper, its journal, and what the last broker has left (docs/restart.md).
//
// In this order: Open, then the devices and the host pool take what was left,
// BeginJournal, then the core adopts, DropTheRest, Watch, and Done at an orderly
// stop. A process that ends without Done leaves all to the next broker.
class Keeping {
 public:
  // All of them outlive it.
  struct Deps {
    ipc::FdDisposer* disposer;
    EventBus* events;
    const Clock* clock;
  };

  // Greets the keeper, which waits for the death of the last broker; fetches
  // what that has left, and reads its journal. Gives back slabs of no lease; changes
  // nothing else.
  static absl::StatusOr<std::unique_ptr<Keeping>> Open(
      const std::string& socket, const Deps& deps);

  // --- The things that were left.
  [[nodiscard]] bool has_found() const { return !left_.empty(); }
  [[nodiscard]] Keeper* slabs() { return &slabs_; }
  // Above all that were given out.
  [[nodiscard]] SlabId next_slab() const { return next_slab_; }
  // Of leases, by device.
  [[nodiscard]] KeptSlabs SlabsByDevice() const;
  // For a host pool as `asked`. One that was left and has contents keeps the
  // size that it had, and so does any one where nobody has set a size.
  [[nodiscard]] absl::StatusOr<HostMemory> HostMemoryFor(
      HostMemory asked) const;

  // --- The things that are kept from now on.
  // A new journal with all that the last one said, in its place.
  absl::Status BeginJournal(uint64_t max_handles, uint64_t max_sessions);
  [[nodiscard]] Journal* journal() { return journal_.get(); }
  // The host pool's, or -1 if there is none.
  absl::Status KeepHostMemory(int fd);
  // A failure is told in an event: the session ends with this broker then.
  void KeepSession(uint64_t session, int socket, const SharedFd& pidfd,
                   int gate_page);
  void EndSession(uint64_t session);

  // --- Adoption.
  // The start fails, or does something that is no record's: should the process
  // end now, no record is to blame.
  void LetGo();
  // With the slabs as the devices have imported them. Sessions whose gate page
  // cannot be mapped are left out, and logged.
  [[nodiscard]] Adoption TakeAdoption(ImportedSlabs imported);
  // Of a session that is adopted, until DropTheRest.
  [[nodiscard]] absl::StatusOr<KeptPeer> PeerOf(uint64_t session) const;
  // Hangs up on sessions that are not among the adopted ones, and removes
  // whatever nobody took over.
  void DropTheRest(const std::set<uint64_t>& adopted,
                   const std::vector<NotAdopted>& not_adopted);

  void Watch();
  [[nodiscard]] bool lost() const { return client_->lost(); }
  // Why it is lost, as the watch has seen it last; empty: it is not. Any thread,
  // never waits.
  [[nodiscard]] std::string problem() const ABSL_LOCKS_EXCLUDED(problem_mu_);
  // Records and slabs that are not kept, for lack of room.
  [[nodiscard]] uint64_t left_out() const;
  // Sessions of the last broker that could not go on with this one.
  [[nodiscard]] uint64_t not_adopted() const { return not_adopted_; }
  // Nothing is to be kept any more.
  void Done();

 private:
  Keeping(const Deps& deps, std::unique_ptr<KeeperClient> client)
      : deps_(deps),
        client_(std::move(client)),
        slabs_(client_.get()),
        sessions_(client_.get(), deps.disposer) {}

  static absl::StatusOr<base::UniqueFd> Duplicate(int fd);
  // Reads the record that was in hand when the last broker died; none: it was
  // done.
  void BeginMarks(std::vector<Kept>* all);
  // Takes what is kept under that key out of `all`; null: nothing is.
  static SharedFd TakeOut(absl::string_view key, std::vector<Kept>* all);
  // From now on a memory error leaves word of the lease that it met.
  void BeginCopyMark();
  void Takes(RecordKind kind, uint64_t id) const;
  absl::Status AdoptSlabs();
  void CountNotAdopted(uint64_t session, absl::string_view why);
  void Remove(const std::string& key);
  void Publish(v1::Event event) const;
  void SetProblem(const std::string& problem) ABSL_LOCKS_EXCLUDED(problem_mu_);
  void ReportLeftOut();

  const Deps deps_;
  const std::unique_ptr<KeeperClient> client_;
  // Until DropTheRest.
  std::unique_ptr<AdoptionMarks> marks_;
  std::optional<BlamesNoRecord> out_of_memory_;
  std::unique_ptr<CopyMark> copy_mark_;
  std::optional<MarksMemoryErrors> memory_errors_;
  RemoteKeeper slabs_;
  KeptSessions sessions_;
  LeftBehind left_;
  absl::Time greeted_;
  // For calls whose refusal would end a session.
  mutable base::Patience patience_{absl::Seconds(1)};
  std::set<SlabId> recorded_;  // slabs of leases that were left
  std::set<SlabId> imported_;
  std::map<uint64_t, KeptPeer> peers_;  // of sessions; their sockets in left_
  SlabId next_slab_ = 1;
  std::atomic<uint64_t> not_adopted_ = 0;
  std::unique_ptr<RecordJournal> journal_;
  bool said_left_out_ = false;  // the watch's thread's
  mutable base::Mutex problem_mu_;
  std::string problem_ ABSL_GUARDED_BY(problem_mu_);
  std::unique_ptr<KeeperWatch> watch_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_KEEPING_H_
