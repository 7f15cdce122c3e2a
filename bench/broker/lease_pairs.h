#ifndef GMB_BENCH_BROKER_LEASE_PAIRS_H_
#define GMB_BENCH_BROKER_LEASE_PAIRS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gmb::bench {

// How a lease is given back.
enum class Ending {
  kRelease,  // Release(), which waits for the broker's answer
  kDestroy,  // its destructor, which does not
};

// How many leases of 2 MiB so many sessions of this process acquire and give
// back a second, each one after the other, all at once.
[[nodiscard]] absl::StatusOr<double> LeasePairsASecond(
    const std::string& socket_dir, uint32_t sessions, double seconds,
    Ending ending);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_LEASE_PAIRS_H_
