#ifndef GMB_BENCH_DEVICE_PEERS_H_
#define GMB_BENCH_DEVICE_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device/handle.h"

namespace gmb::bench {

// A program without a broker: allocates and frees in its own process. Measured
// in the same run, since absolute times differ by machine.
class Peer {
 public:
  struct Times {
    absl::Duration allocate;
    absl::Duration free;
  };

  virtual ~Peer() = default;
  [[nodiscard]] virtual std::string allocate_name() const = 0;
  [[nodiscard]] virtual std::string free_name() const = 0;
  [[nodiscard]] virtual absl::StatusOr<Times> Run(uint64_t bytes) = 0;
};

// Those that this machine has: anonymous memory for the host device;
// cuMemAlloc, and cudaMalloc where the CUDA runtime is found, for a GPU.
[[nodiscard]] std::vector<std::unique_ptr<Peer>> FindPeers(
    const device::DeviceInfo& info);

}  // namespace gmb::bench

#endif  // GMB_BENCH_DEVICE_PEERS_H_
