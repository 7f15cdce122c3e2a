#ifndef GMB_KEEPER_SUCCESSION_H_
#define GMB_KEEPER_SUCCESSION_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "keeper/link/keeper_link.h"
#include "keeper/shelf.h"
#include "keeper/wire/messages.h"

namespace gmb::keeper {

// All that a keeper had when it stopped to serve.
struct Inheritance {
  Estate estate;
  std::vector<KeptEntry> entries;  // in the order of their orders
  base::UniqueFd directory;        // with the lock
  base::UniqueFd listener;
  base::UniqueFd broker_pidfd;  // not valid: it is dead, or there is none
  base::UniqueFd broker;        // its connection, likewise
};

// The side of a keeper that takes the place of one that lives: each step is the
// next question. Until Commit has returned well the other one may go on, so
// nothing of it may be used before.
class Succession {
 public:
  // UNAVAILABLE: nobody listens. FAILED_PRECONDITION: not now, and why.
  // INVALID_ARGUMENT: one that knows no successors.
  static absl::StatusOr<Succession> Begin(const LinkOptions& options);

  // Serves nobody else from then on, for a short while. RESOURCE_EXHAUSTED: it
  // has more than `limits`. DATA_LOSS: not all of it came. `managed`: a service
  // manager listens to this process.
  [[nodiscard]] absl::StatusOr<Inheritance> TakeAll(const Shelf::Limits& limits,
                                                    bool managed = false);

  // It is this process's alone from then on, whatever becomes of the other. An
  // error: the other one has gone on, and what was taken is worth nothing.
  [[nodiscard]] absl::Status Commit();

 private:
  Succession(KeeperLink link, base::UniqueFd pidfd)
      : link_(std::move(link)), pidfd_(std::move(pidfd)) {}

  absl::StatusOr<std::vector<KeptEntry>> TakeEntries();

  KeeperLink link_;
  base::UniqueFd pidfd_;  // of the other one
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_SUCCESSION_H_
