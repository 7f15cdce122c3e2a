#ifndef GMB_CLIENT_PRELOAD_BROKER_LINK_H_
#define GMB_CLIENT_PRELOAD_BROKER_LINK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/lease/range_hooks.h"
#include "client/preload/broker_library.h"

namespace gmb::preload {

class Contexts;

// Leased memory, mapped at `start`; 0 when its holder maps it.
struct LeaseRange {
  gmb_lease* handle = nullptr;  // null: only asked for
  uint64_t start = 0;
  uint64_t bytes = 0;
  uint64_t session = 0;  // the number of BrokerLink's
  uint64_t asked = 0;    // the number of what was asked for ahead of need
  uint64_t name = 0;     // what its holder calls it, who maps it
  bool shared = false;   // with another process: it is not kept
};

// The result of asking the broker.
enum class Outcome {
  kDone,
  kNoMemory,    // it refused, or could not within the wait
  kNoBroker,    // nobody answers, or not any more
  kTurnedAway,  // it takes no session of this process: no token, say
  kNotOffered,  // it has no pool of this device
  kNotMapped,   // it granted, and this process could not map what it gave
};

// The bytes that the tenant could get now, could have at most, and has with all
// its processes.
struct Budget {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  uint64_t leased_bytes = 0;
};

// The process's session with the broker. Connects at the first question, and
// anew when the broker has hung up; after a failure not for a second.
// Thread-safe; no lock is held while the broker is asked, but while others wait
// for the same connection.
class BrokerLink {
 public:
  // Others need `bytes` of the device: called on a thread of the library's.
  using TrimHandler =
      std::function<void(const std::string& device, uint64_t bytes)>;

  // `contexts` lives as long as the process, and so does the link.
  BrokerLink(Contexts* contexts, TrimHandler on_trim)
      : contexts_(contexts), on_trim_(std::move(on_trim)) {}

  // `device` is a GPU's UUID as the broker writes it, and `peers` are those of
  // the others that may use the memory; they count where it is mapped for each.
  // `wait_ms` as gmb_acquire_options has it.
  [[nodiscard]] Outcome Acquire(const std::string& device,
                                const std::vector<std::string>& peers,
                                uint64_t bytes, int64_t wait_ms,
                                LeaseRange* lease);
  // The same, of memory that the hooks map. kNotOffered also for a device that
  // has no such leases. `asked` is null, or what AskAhead gave for as many bytes
  // there; kNoMemory then says only that it did not come.
  [[nodiscard]] Outcome AcquireUnmapped(const std::string& device,
                                        uint64_t bytes, int64_t wait_ms,
                                        const internal::RangeHooks& hooks,
                                        const LeaseRange* asked,
                                        LeaseRange* lease);
  // Asks for up to `count` of them, each if it is free now. Does not wait. Each
  // has to be acquired or forgotten.
  [[nodiscard]] std::vector<LeaseRange> AskAhead(const std::string& device,
                                                 uint64_t bytes, size_t count);
  // It goes back. Waits for the broker's answer to it.
  void Forget(const LeaseRange& asked);
  // Other processes of the tenant may map the lease from now on, which has to be
  // on the device; `slab_fd` as gmb_internal_export has it. Why not is said.
  // kNoMemory: guarantees of others rest on it. kNotOffered: it cannot be.
  [[nodiscard]] Outcome Export(const LeaseRange& lease,
                               internal::ExportedLease* exported, int* slab_fd);
  // Such a lease of another process, mapped by the hooks. kNotOffered: there is
  // none, or none any more, of this tenant.
  [[nodiscard]] Outcome AttachExported(const std::string& device,
                                       const internal::ExportedLease& exported,
                                       const internal::RangeHooks& hooks,
                                       LeaseRange* lease);
  // kDone when AcquireUnmapped may be tried there.
  [[nodiscard]] Outcome OffersUnmapped(const std::string& device);
  [[nodiscard]] Outcome Ask(const std::string& device, Budget* budget);
  // Whether the session that it is of goes on.
  [[nodiscard]] bool Lives(const LeaseRange& lease);
  // Another client of the session, as gmb_internal_join makes it. Null, without
  // an error, when there is no session.
  [[nodiscard]] gmb_error* Join(const gmb_client_options& options,
                                gmb_client** joined);
  // Says how much of the device on_trim could give back. Does not wait.
  void SetTrimmable(const std::string& device, uint64_t bytes);
  // Unmaps, and tells the broker; of a lease that no work is left on. Waits for
  // neither the device nor the broker: what is asked of it later comes after.
  static void Release(const LeaseRange& lease);
  // Tells the broker; of a lease that is unmapped.
  static void ReleaseSoon(const LeaseRange& lease);

 private:
  class Session;

  // With the hooks, if any.
  [[nodiscard]] Outcome Acquire(const std::string& device,
                                const std::vector<std::string>& peers,
                                uint64_t bytes, int64_t wait_ms,
                                const internal::RangeHooks* hooks,
                                const LeaseRange* asked, LeaseRange* lease);
  // The one of that number, if it is the current one.
  [[nodiscard]] std::shared_ptr<Session> Current(uint64_t number);
  // kDone, with the session; otherwise why there is none.
  [[nodiscard]] Outcome Connect(std::shared_ptr<Session>* session);

  Contexts* const contexts_;
  const TrimHandler on_trim_;
  base::Mutex mu_;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mu_);
  uint64_t sessions_ ABSL_GUARDED_BY(mu_) = 0;
  // Until the next try, what came of the last.
  Outcome last_try_ ABSL_GUARDED_BY(mu_) = Outcome::kNoBroker;
  std::chrono::steady_clock::time_point next_try_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_BROKER_LINK_H_
