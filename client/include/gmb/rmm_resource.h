#ifndef GMB_RMM_RESOURCE_H_
#define GMB_RMM_RESOURCE_H_

// A gmb::Heap as a memory resource of RMM (compiled with 26.08, where resources
// are classes with the members of CCCL's concept and no common base):
//
//   gmb::RmmResource resource(heap.get());
//   rmm::mr::set_current_device_resource(resource);
//
// Header-only; needs RMM's headers and is included by nothing of ours.

#include <cstddef>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <rmm/error.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmb/heap.h"

namespace gmb {

// Copies name the same heap, which outlives them all, and which is the one of
// the device that is current where they are used. Thread-safe.
class RmmResource {
 public:
  explicit RmmResource(Heap* heap) : heap_(heap) {}

  // Throws rmm::out_of_memory, with the broker's reason in its words, and
  // rmm::bad_alloc for what is no lack of memory.
  void* allocate(cuda::stream_ref stream, std::size_t bytes,
                 std::size_t alignment = kAlignment) {
    if (alignment > kMostAlignment) {
      throw rmm::bad_alloc("gmb: blocks are aligned to 512 bytes and no more");
    }
    if (IsPerThread(stream)) {
      throw rmm::bad_alloc(
          "gmb: the default stream is another one in each thread here: make "
          "one "
          "with cudaStreamCreate and allocate for that");
    }
    const absl::StatusOr<void*> got = heap_->Allocate(bytes, stream.get());
    if (got.ok()) return *got;
    const std::string message(got.status().message());
    if (absl::IsResourceExhausted(got.status()))
      throw rmm::out_of_memory(message);
    throw rmm::bad_alloc(message);
  }

  // An address that is not the heap's is left alone. The stream of each thread,
  // which the heap refuses, is waited for. Then nothing uses the block any more,
  // and any stream may have it: the one that it was allocated for may be gone. A
  // capture that takes its memory from the block's pool may have put uses of it
  // into its graph, so the block is held until that ends. After an error it is kept.
  void deallocate(cuda::stream_ref stream, void* address, std::size_t /*bytes*/,
                  std::size_t /*alignment*/ = kAlignment) noexcept {
    if (!IsPerThread(stream)) {
      heap_->Free(address, stream.get()).IgnoreError();
    } else if (cudaStreamSynchronize(stream.get()) == cudaSuccess) {
      heap_->FreeDone(address).IgnoreError();
    }
  }

  // The same in the order of the legacy default stream, which follows and is
  // followed by those made without cudaStreamNonBlocking. So, as the concept
  // asks: nobody still writes to it, and nobody still uses what is given back.
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kAlignment) {
    const cuda::stream_ref legacy{cudaStreamLegacy};
    void* const address = allocate(legacy, bytes, alignment);
    legacy.sync();
    return address;
  }
  void deallocate_sync(void* address, std::size_t bytes,
                       std::size_t alignment = kAlignment) noexcept {
    deallocate(cuda::stream_ref{cudaStreamLegacy}, address, bytes, alignment);
  }

  friend bool operator==(const RmmResource& left, const RmmResource& right) {
    return left.heap_ == right.heap_;
  }
  friend void get_property(const RmmResource&,
                           cuda::mr::device_accessible) noexcept {}

 private:
  static constexpr std::size_t kAlignment = 256;  // cudaMalloc's
  static constexpr std::size_t kMostAlignment = 512;

  // Where the program is built so, null is that stream too.
  static bool IsPerThread(cuda::stream_ref stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    if (stream.get() == nullptr) return true;
#endif
    return stream.get() == cudaStreamPerThread;
  }

  Heap* heap_;
};

static_assert(
    cuda::mr::resource_with<RmmResource, cuda::mr::device_accessible>);

}  // namespace gmb

#endif  // GMB_RMM_RESOURCE_H_
