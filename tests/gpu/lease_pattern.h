#ifndef GMB_TESTS_GPU_LEASE_PATTERN_H_
#define GMB_TESTS_GPU_LEASE_PATTERN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmb/client.h"

namespace gmb::scenario {

// Fills whole leases with a pattern and looks for it again. For one thread,
// inside a scope of the gate.
class LeasePattern {
 public:
  virtual ~LeasePattern() = default;

  // By kernels on a GPU, by copies where there are none.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LeasePattern>> For(
      const Device& device);

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual absl::Status Fill(Lease* lease, uint64_t seed) = 0;
  // Words that are not as Fill left them.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountWrong(const Lease& lease,
                                                            uint64_t seed) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountNonZero(
      const Lease& lease) = 0;
};

}  // namespace gmb::scenario

#endif  // GMB_TESTS_GPU_LEASE_PATTERN_H_
