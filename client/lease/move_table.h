#ifndef GMB_CLIENT_LEASE_MOVE_TABLE_H_
#define GMB_CLIENT_LEASE_MOVE_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "client/lease/mapped_lease.h"
#include "client/lease/slab_set.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// A session's mapped leases, and what the broker asks to be moved: which move
// of each is the newest, the slabs that come for it, and what it was answered
// with. No threads and no clock. Not thread-safe; the Mover's lock guards it.
//
// A move of a lease replaces its older ones. The broker is not trusted: an
// error says how it broke the protocol, and the session should end.
class MoveTable {
 public:
  // One move that can be carried out now.
  struct Task {
    uint64_t lease_id = 0;
    uint64_t move = 0;
    std::shared_ptr<MappedLease> lease;
    bool is_map = false;  // or an eviction
    std::vector<device::ShareableHandle> handles{};
    std::vector<uint64_t> slab_bytes{};
  };
  // Of the moves of leases that this process has not mapped, so many are kept.
  static constexpr size_t kMostUnknown = 1024;

  // The lease is mapped for the first time. Evictions that came before are due.
  void Add(uint64_t lease_id, std::shared_ptr<MappedLease> lease);
  // The lease is about to be released: nothing moves it, or answers, any more.
  void Remove(uint64_t lease_id);
  // The broker has taken note of a release: evictions that came for it before
  // were of that mapping. A shared lease may be attached to again, by its id.
  void OnReleased(uint64_t lease_id);
  // The leases, to be looked at without a lock.
  [[nodiscard]] std::vector<std::shared_ptr<MappedLease>> Leases() const;

  // The broker's requests. They return the answer, if it was given already.
  [[nodiscard]] absl::StatusOr<std::optional<v1::ClientMessage>> OnEvict(
      const v1::Evict& evict);
  [[nodiscard]] absl::StatusOr<std::optional<v1::ClientMessage>> OnMap(
      const v1::Map& map);
  // Slabs of a Map; closes those that nobody waits for.
  [[nodiscard]] absl::Status OnSlabs(const v1::Slabs& frame,
                                     std::vector<base::UniqueFd> fds);

  [[nodiscard]] bool has_task() const { return !ready_.empty(); }
  // The next move to carry out, in the order in which they could be.
  [[nodiscard]] std::optional<Task> TakeTask();
  // It was carried out. False: the lease was released, so do not answer.
  [[nodiscard]] bool Done(const Task& task, const v1::ClientMessage& answer);

  // The session is over: forgets all moves, and closes their slabs.
  void Clear();

 private:
  struct Entry {
    std::shared_ptr<MappedLease> lease;  // null: not mapped by us (yet)
    uint64_t move = 0;                   // the newest
    std::optional<v1::Map> map;          // of it; none: an Evict
    bool queued = false;                 // in ready_
    bool started = false;                // the newest move was taken
    std::optional<v1::ClientMessage> answer;
    // May be ahead of `move`: the sockets do not wait for each other.
    uint64_t slabs_move = 0;
    SlabSet slabs;
  };

  // Whether `move` is newer than the entry's; then it is the entry's.
  static bool Advance(Entry& entry, uint64_t move);
  // All slabs of the newest move, a Map, are here.
  static bool HasSlabs(const Entry& entry);
  void Queue(uint64_t lease_id, Entry& entry);
  absl::Status QueueIfComplete(uint64_t lease_id, Entry& entry);
  void DropOldestUnknown();

  std::map<uint64_t, Entry> entries_;  // by lease id
  size_t unknown_ = 0;                 // entries without a lease
  std::deque<uint64_t> ready_;         // lease ids
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_MOVE_TABLE_H_
