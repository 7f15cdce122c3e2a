#ifndef GMB_BROKER_DAEMON_KEEPING_H_
#define GMB_BROKER_DAEMON_KEEPING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/daemon/inheritance.h"
#include "broker/daemon/keeper_news.h"
#include "broker/daemon/memory_error.h"
#include "broker/daemon/record_in_hand.h"
#include "broker/keeping/copy_mark.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/keeper_watch.h"
#include "broker/keeping/kept_sessions.h"
#include "broker/keeping/record_journal.h"
#include "broker/keeping/remote_keeper.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// The parts that a broker with a keeper has and one without has not: its
// keeper, its journal, and what the last broker has left (docs/handover.md).
//
// In this order: Open, then the devices and the host pool take what was left,
// BeginJournal, then the core adopts, the inheritance's DropTheRest, Watch, and
// Done at an orderly stop. A process that ends without Done leaves all to the
// next broker.
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

  // The things that were left.
  [[nodiscard]] Inheritance* inheritance() { return inheritance_.get(); }
  // As RecordInHand's.
  void LetGo() { in_hand_.LetGo(); }
  [[nodiscard]] Keeper* slabs() { return &slabs_; }

  // --- The things that are kept from now on.
  // A new journal with all that the last one said, in its place; and a new mark
  // of copies.
  absl::Status BeginJournal(uint64_t max_handles, uint64_t max_sessions);
  [[nodiscard]] Journal* journal() { return journal_.get(); }
  // The host pool's, or -1 if there is none.
  absl::Status KeepHostMemory(int fd);
  // A failure is told in an event: the session ends with this broker then.
  void KeepSession(uint64_t session, int socket, const SharedFd& pidfd,
                   int gate_page);
  void EndSession(uint64_t session);

  void Watch();
  [[nodiscard]] bool lost() const { return client_->lost(); }
  // Why it is lost, as the watch has seen it last; empty: it is not. Any thread,
  // never waits.
  [[nodiscard]] std::string problem() const { return news_.problem(); }
  // Records and slabs that are not kept, for lack of room.
  [[nodiscard]] uint64_t left_out() const;
  // Nothing is to be kept any more.
  void Done();

 private:
  Keeping(const Deps& deps, std::unique_ptr<KeeperClient> client)
      : client_(std::move(client)),
        news_(client_.get(), deps.events, deps.clock),
        in_hand_(client_.get()),
        slabs_(client_.get()),
        sessions_(client_.get(), deps.disposer) {}

  // From now on a memory error leaves word of the lease that it met.
  void BeginCopyMark();

  const std::unique_ptr<KeeperClient> client_;
  KeeperNews news_;
  RecordInHand in_hand_;
  std::unique_ptr<CopyMark> copy_mark_;
  std::optional<MarksMemoryErrors> memory_errors_;
  RemoteKeeper slabs_;
  KeptSessions sessions_;
  std::unique_ptr<Inheritance> inheritance_;
  std::unique_ptr<RecordJournal> journal_;
  std::unique_ptr<KeeperWatch> watch_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_KEEPING_H_
