#ifndef GMB_CLIENT_SESSION_LEASE_CALLS_H_
#define GMB_CLIENT_SESSION_LEASE_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/lease/early_mapping.h"
#include "client/lease/mapped_lease.h"
#include "client/lease/mover.h"
#include "client/session/calls.h"
#include "gmb/options.h"

namespace gmb::internal {

// The calls about a session's leases, from the request to the release.
// Thread-safe.
class LeaseCalls {
 public:
  // Both outlive it.
  LeaseCalls(Calls* calls, Mover* mover) : calls_(*calls), mover_(*mover) {}

  // Blocks until the lease is granted and all of its slabs are here. The caller
  // that gets it owes the broker Mapped or Release. `early` may be null; if it
  // was given slabs, those granted are without handles.
  [[nodiscard]] absl::StatusOr<Granted> Acquire(uint64_t bytes,
                                                const AcquireOptions& options,
                                                EarlyMapping* early = nullptr,
                                                Arrivals* arrivals = nullptr);
  // --- Ahead of need.

  // Asks for `count` leases that may be wanted soon, each of what is free now;
  // a refusal of theirs counts for nothing. Their numbers, for TakeAhead or
  // ForgetAhead. When the session is over there are fewer.
  [[nodiscard]] std::vector<uint64_t> AskAhead(uint64_t bytes,
                                               const AcquireOptions& options,
                                               size_t count);
  // Asks for a lease without a wait, and for so many like it ahead of need: their
  // numbers, for TakeAhead or ForgetAhead, the needed one's first.
  [[nodiscard]] absl::StatusOr<std::vector<uint64_t>> AskWithMore(
      uint64_t bytes, const AcquireOptions& options, size_t ahead);
  [[nodiscard]] absl::StatusOr<Granted> TakeAhead(uint64_t asked,
                                                  const AcquireOptions& options,
                                                  EarlyMapping* early);
  // Waits for the answer, and releases what was granted.
  void ForgetAhead(uint64_t asked);

  // As Acquire, for a shared lease of the tenant; of the options' what names the
  // memory is not used. It is the session's own from now on.
  [[nodiscard]] absl::StatusOr<Granted> Attach(const std::string& name,
                                               const AcquireOptions& options,
                                               EarlyMapping* early = nullptr);
  // The session's own lease, for others of its tenant; with the key that they
  // attach by, which the Grant tells, and its slabs once more.
  [[nodiscard]] absl::StatusOr<Granted> Export(uint64_t lease_id,
                                               const std::string& key);
  [[nodiscard]] absl::StatusOr<Granted> AttachExported(uint64_t lease_id,
                                                       const std::string& key,
                                                       EarlyMapping* early);
  [[nodiscard]] absl::Status DropShared(const std::string& name);
  // Tells the broker that the lease is mapped, soon. From now on the broker may
  // have it moved.
  void Mapped(uint64_t lease_id, std::shared_ptr<MappedLease> lease);
  [[nodiscard]] absl::Status Seal(uint64_t lease_id);
  // Before a lease is unmapped to be released.
  void StopMoving(uint64_t lease_id);
  // Tells the broker that the lease is unmapped, and waits for its answer. OK
  // when the session is over.
  [[nodiscard]] absl::Status Release(uint64_t lease_id);
  // The same, without waiting.
  void ReleaseLater(uint64_t lease_id);

 private:
  void QueueAhead(uint64_t bytes, const AcquireOptions& options, size_t count,
                  std::vector<uint64_t>* asked);

  Calls& calls_;
  Mover& mover_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_LEASE_CALLS_H_
