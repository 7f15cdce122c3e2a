#ifndef GMB_BROKER_KEEPING_KEEPER_CLIENT_H_
#define GMB_BROKER_KEEPING_KEEPER_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "ipc/fd_disposer.h"
#include "keeper/link/keeper_link.h"

namespace gmb::broker {

struct KeeperClientOptions {
  std::string socket;
  // Closes the sockets among what it fetches: they have what clients sent last.
  // Null: whoever lets go of them last. Outlives the client.
  ipc::FdDisposer* disposer = nullptr;
  absl::Duration timeout = absl::Seconds(5);  // of each answer
  // How long a broker that starts waits for the death of the one before it.
  absl::Duration wait_for_last = absl::Seconds(10);
  // And for a keeper that is started beside it.
  absl::Duration wait_for_listener = absl::ZeroDuration();
};

// This process's own fd of what a keeper has; whoever shares it keeps it open.
using SharedFd = std::shared_ptr<const base::UniqueFd>;

// `disposer` closes it in the end, unless it is null.
[[nodiscard]] SharedFd Share(base::UniqueFd fd,
                             ipc::FdDisposer* disposer = nullptr);

// The things that a keeper has under one name.
struct Kept {
  std::string key = {};
  std::string record = {};
  std::vector<SharedFd> fds = {};
  // Which of them is the pidfd of a process for whose sake it is kept.
  std::optional<uint8_t> peer = std::nullopt;
};

// The broker's side of a keeper. It knows all that it has put, so that a keeper
// that died can be replaced while the broker lives: nothing is lost then.
//
// Thread-safe. Each call but lost() and entries() blocks until the keeper has
// answered: never call them under the core's lock. A keeper that is silent
// makes the first call wait for its time limit; from then on it is lost, and
// nobody waits for it until Refill has found one that answers.
class KeeperClient {
 public:
  // Errors are those of KeeperLink::Connect.
  static absl::StatusOr<std::unique_ptr<KeeperClient>> Connect(
      const KeeperClientOptions& options);

  // All that the last broker has left, in the order in which it was put; this
  // one's from now on. Once, before the first Put. DATA_LOSS where the keeper
  // sends something else than was put: too few or too many fds, a name or an
  // fd twice, a record with another checksum, fewer entries than it said.
  absl::StatusOr<std::vector<Kept>> Adopt() ABSL_LOCKS_EXCLUDED(mu_);

  // Acknowledged when it returns OK; or the keeper is lost, and gets it with
  // Refill. ALREADY_EXISTS, INVALID_ARGUMENT; RESOURCE_EXHAUSTED: the keeper is
  // full, or too many fds are in flight.
  absl::Status Put(Kept kept) ABSL_LOCKS_EXCLUDED(mu_);
  // NOT_FOUND. Where the keeper is lost the entry is forgotten all the same, and
  // it is OK: the next keeper does not get it.
  absl::Status Remove(const std::string& key) ABSL_LOCKS_EXCLUDED(mu_);
  // An orderly stop: nothing is to be kept any more. The last call.
  absl::Status Done() ABSL_LOCKS_EXCLUDED(mu_);

  // The keeper died, or does not answer: what was put is in this process alone.
  // Or it is displaced. A look, without waiting.
  [[nodiscard]] bool lost() const ABSL_LOCKS_EXCLUDED(mu_);
  // It is lost, and not dead as far as is known: it still has its fds. Never
  // waits.
  [[nodiscard]] bool silent() const { return silent_; }
  // It has all, and does not listen at the path any more, since its directory
  // was removed or made anew: no other broker would find it. As the last
  // CheckPlace has seen it; never waits.
  [[nodiscard]] bool displaced() const { return displaced_; }
  // Asks who listens at the path where that is another file than before. On the
  // thread of Refill.
  void CheckPlace() ABSL_LOCKS_EXCLUDED(mu_);
  // Connects to the keeper that listens by now, and puts everything into it
  // that it does not have: first what the rest is worth nothing without (the
  // journal, the host pool), then sessions, then slabs. Until it is OK, lost()
  // stays true. One that is displaced has everything until another one has it,
  // and is then told to give it back. RESOURCE_EXHAUSTED: the next one has no
  // room for one of the first, and got nothing. All else that it refuses ends
  // with this process. Others' calls go on meanwhile; one thread at a time.
  absl::Status Refill() ABSL_LOCKS_EXCLUDED(mu_);

  // Entries that the last Refill found no room for, and that were not removed
  // since. Never waits.
  [[nodiscard]] uint64_t refused() const { return refused_; }
  [[nodiscard]] size_t entries() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of the keeper that is connected; another one has another.
  [[nodiscard]] std::string keeper_id() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  KeeperClient(const KeeperClientOptions& options, keeper::KeeperLink link)
      : options_(options), link_(std::move(link)) {}

  // The entries that a keeper has and is not to have, and the other way round.
  struct Difference {
    std::vector<std::string> remove;
    std::vector<Kept> put;
  };
  [[nodiscard]] Difference Compare(
      const absl::flat_hash_set<std::string>& there) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the socket, as a file.
  struct Place {
    uint64_t device;
    uint64_t inode;
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] static std::optional<Place> PlaceOf(const std::string& socket);
  // Makes `link` the keeper's; the former one.
  keeper::KeeperLink ChangeTo(keeper::KeeperLink link,
                              absl::flat_hash_set<std::string> refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After a question with this answer.
  void NoteAnswer(const absl::Status& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remember(Kept kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const KeeperClientOptions options_;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> displaced_ = false;
  std::optional<Place> place_;  // where it was found; Refill's thread's
  mutable base::Mutex mu_;
  keeper::KeeperLink link_ ABSL_GUARDED_BY(mu_);
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  // In the order in which they were put.
  std::map<uint64_t, Kept> entries_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, uint64_t> by_key_ ABSL_GUARDED_BY(mu_);
  uint64_t last_order_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_set<std::string> refused_keys_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_KEEPER_CLIENT_H_
