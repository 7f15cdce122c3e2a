// Stands in for cuda_peers.cc in a build without CUDA headers.
#include "absl/status/status.h"
#include "bench/heap/cuda_peers.h"

namespace gmb::bench {

std::vector<std::unique_ptr<Peer>> MakeCudaPeers(const std::string&) {
  return {};
}

absl::StatusOr<std::unique_ptr<Streams>> MakeCudaStreams(const std::string&,
                                                         uint64_t) {
  return absl::FailedPreconditionError("this build has no CUDA devices");
}

}  // namespace gmb::bench
