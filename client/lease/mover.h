#ifndef GMB_CLIENT_LEASE_MOVER_H_
#define GMB_CLIENT_LEASE_MOVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "client/lease/mapped_lease.h"
#include "client/lease/move_table.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// The receiver of a Mover's answers. Called without a lock of the Mover.
class MoverOwner {
 public:
  // Mapped or Unmapped, to be written at once.
  virtual void SendMoved(v1::ClientMessage answer) = 0;
  // An answer could not be made: the session cannot go on.
  virtual void MoverFailed(const absl::Status& why) = 0;

 protected:
  ~MoverOwner() = default;
};

// Carries out what the broker asks to be done with a session's mapped leases
// (Evict, Map), on a thread of its own: unmapping waits for the device. The
// thread starts with the first of them. Thread-safe.
class Mover {
 public:
  // `owner` outlives it.
  explicit Mover(MoverOwner* owner) : owner_(*owner) {}
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  // Waits for a move that is being carried out.
  ~Mover();

  // A lease is mapped; its Mapped is written before any answer made here.
  void Add(uint64_t lease_id, std::shared_ptr<MappedLease> lease);
  // Before a lease is released: it is not moved, and nothing answered for it,
  // afterwards, but for a move that is under way.
  void Remove(uint64_t lease_id);
  [[nodiscard]] std::vector<std::shared_ptr<MappedLease>> Leases();

  // From the broker; an error says how it broke the protocol.
  [[nodiscard]] absl::Status OnEvict(const v1::Evict& evict);
  [[nodiscard]] absl::Status OnMap(const v1::Map& map);
  void OnReleased(uint64_t lease_id);
  [[nodiscard]] absl::Status OnSlabs(const v1::Slabs& frame,
                                     std::vector<base::UniqueFd> fds);

  // Asked on the mover's thread before each lease is unmapped; an error is the
  // answer to that Evict, and the lease stays. Null: nobody is asked. Waits for
  // one that is being asked. Not to be called by a witness.
  using Witness = std::function<absl::Status()>;
  void SetWitness(Witness witness);

  // The session is over: what is not mapped stays so, and slabs that came are
  // closed.
  void Clear();

 private:
  using Repeated = absl::StatusOr<std::optional<v1::ClientMessage>>;

  absl::Status Answer(Repeated repeated);
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  void DoTask(MoveTable::Task task);
  v1::ClientMessage CarryOut(MoveTable::Task& task);
  [[nodiscard]] absl::Status AskWitness();

  MoverOwner& owner_;
  base::Mutex mu_;
  base::CondVar changed_;
  MoveTable table_ ABSL_GUARDED_BY(mu_);
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
  base::Mutex witness_mu_;  // held while it is asked
  Witness witness_ ABSL_GUARDED_BY(witness_mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_MOVER_H_
