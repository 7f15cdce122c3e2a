#include "bench/heap/rmm_peer.h"

#include <cstdint>
#include <cstdio>
#include <cuda/stream_ref>
#include <exception>
#include <optional>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <string>

namespace gmb::bench {
namespace {

// As much as a heap of gmb takes at least. From there on RMM's pool doubles.
constexpr uint64_t kFirstBytes = uint64_t{64} << 20;
constexpr size_t kAlignment = 256;  // cudaMalloc's

class RmmPeer final : public Peer {
 public:
  std::string name() const override { return "RMM's pool"; }
  void* Allocate(uint64_t bytes, void* stream) override {
    try {
      // Its first memory is part of the first replay, as the others' is.
      if (!pool_.has_value()) pool_.emplace(upstream_, kFirstBytes);
      return pool_->allocate(StreamOf(stream), bytes, kAlignment);
    } catch (const std::exception&) {  // rmm::out_of_memory, for one
      return nullptr;
    }
  }
  void Free(void* address, uint64_t bytes, void* stream) override {
    pool_->deallocate(StreamOf(stream), address, bytes, kAlignment);
  }
  // It gives nothing back.
  uint64_t PeakReservedBytes() override {
    return pool_.has_value() ? pool_->pool_size() : 0;
  }

 private:
  static cuda::stream_ref StreamOf(void* stream) {
    return cuda::stream_ref{static_cast<cudaStream_t>(stream)};
  }

  rmm::mr::cuda_memory_resource upstream_;
  std::optional<rmm::mr::pool_memory_resource> pool_;
};

}  // namespace

std::unique_ptr<Peer> MakeRmmPeer() {
  try {
    return std::make_unique<RmmPeer>();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heap_bench: RMM's pool is left out: %s\n",
                 error.what());
    return nullptr;
  }
}

}  // namespace gmb::bench
