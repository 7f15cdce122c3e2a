#ifndef GMB_BENCH_HEAP_CUDA_PEERS_H_
#define GMB_BENCH_HEAP_CUDA_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/heap/peers.h"

namespace gmb::bench {

// The GPU's half of peers.h. Streams make the GPU's primary context current in
// the calling thread.
[[nodiscard]] std::vector<std::unique_ptr<Peer>> MakeCudaPeers(
    const std::string& uuid);
[[nodiscard]] absl::StatusOr<std::unique_ptr<Streams>> MakeCudaStreams(
    const std::string& uuid, uint64_t count);

}  // namespace gmb::bench

#endif  // GMB_BENCH_HEAP_CUDA_PEERS_H_
