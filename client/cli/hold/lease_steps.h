#ifndef GMB_CLIENT_CLI_HOLD_LEASE_STEPS_H_
#define GMB_CLIENT_CLI_HOLD_LEASE_STEPS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/hold/filled_lease.h"
#include "client/cli/hold/step_log.h"
#include "gmb/client.h"
#include "gmb/options.h"

namespace gmb::cli {

// The steps of `gmb hold` with all of its leases; each prints a line a lease.
// The first error ends a step.

// DATA_LOSS when a byte is not what was written.
[[nodiscard]] absl::Status VerifyAll(const std::vector<FilledLease>& leases,
                                     StepLog* log);
[[nodiscard]] absl::Status SealAll(std::vector<FilledLease>* leases,
                                   StepLog* log);
// Leaves none.
[[nodiscard]] absl::Status ReleaseAll(std::vector<FilledLease>* leases,
                                      StepLog* log);

// Enters a scope of the client's gate, waits for at most `wait` until the
// memory is back, says how long that took, verifies, and leaves the scope.
// Contents that may be lost (kDiscard) and were are written anew.
[[nodiscard]] absl::Status WakeAll(Client* client, Contents contents,
                                   absl::Duration wait,
                                   std::vector<FilledLease>* leases,
                                   StepLog* log);

// When the session is over: verifies the leases that are mapped. Those that
// were away are lost: says so, and takes them out of `leases`.
[[nodiscard]] absl::Status VerifyMapped(Contents contents,
                                        std::vector<FilledLease>* leases,
                                        StepLog* log);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_HOLD_LEASE_STEPS_H_
