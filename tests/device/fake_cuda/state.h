#ifndef GMB_TESTS_DEVICE_FAKE_CUDA_STATE_H_
#define GMB_TESTS_DEVICE_FAKE_CUDA_STATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "device/devices.h"
#include "tests/device/driver_of_programs.h"

// Shared by the fake driver's functions; fake_cuda.h says what it is for.

namespace fake_cuda {

using gmb::base::UniqueFd;
using gmb::device::Allocator;
using gmb::device::SlabKey;

inline constexpr uint64_t kTotalBytes = uint64_t{1} << 30;
inline constexpr uint64_t kGranularityBytes = uint64_t{2} << 20;

// Memory that this process created (key > 0) or imported (key 0).
struct Memory {
  UniqueFd fd;
  uint64_t bytes = 0;
  SlabKey key = 0;
  // Another process created it: TheGpu().memory does not know of it.
  bool foreign = false;
};

// Work of a stream is numbered from 1; it is done when somebody waits for it.
struct Copy {
  void* to;
  const void* from;
  uint64_t bytes;
};
struct Stream {
  CUcontext context = nullptr;
  std::deque<Copy> pending;
  uint64_t done = 0;
};
struct Event {
  CUcontext context = nullptr;
  std::map<CUstream, uint64_t> after;  // work of the streams
};

struct Gpu {
  std::recursive_mutex mutex;  // guards the rest
  std::unique_ptr<Allocator> memory =
      *gmb::device::OpenHostAllocator({.capacity_bytes = kTotalBytes});
  std::map<CUmemGenericAllocationHandle, Memory> handles;
  std::map<CUdeviceptr, uint64_t> reservations;  // start -> bytes
  std::map<CUdeviceptr, uint64_t> mappings;
  std::map<CUdeviceptr, std::set<CUdevice>> accessible;  // mappings, from there
  std::map<CUdeviceptr, Memory> allocations;             // cuMemAlloc
  std::map<CUdeviceptr, uint64_t> opened;                // cuIpcOpenMemHandle
  std::map<CUstream, Stream> streams;
  std::map<CUevent, Event> events;
  std::set<CUstream> capturing;
  std::map<CUdeviceptr, CUmemoryPool> from_pools;  // of allocations
  std::map<CUmemoryPool, cuuint64_t> release_thresholds;
  std::map<CUdevice, CUmemoryPool> current_pools;  // that were set
  std::map<uintptr_t, uint64_t> page_locked;
  CUmemGenericAllocationHandle next_handle = 100;
  std::map<CUcontext, CUdevice> contexts;  // that live
  std::map<CUcontext, CUcontext> greens;   // with the primary ones they are of
  std::map<CUdevice, int> retained;
  bool initialized = false;
  uint64_t pushed_contexts = 0;  // of all threads
  uint64_t calls_until_failure = 0;
  bool fails_on = false;  // after the first failure
  CUresult failure = CUDA_SUCCESS;
  const char* failed = nullptr;
  uint64_t unmaps_until_refusal = 0;
  CUresult refusal = CUDA_SUCCESS;
  CUresult fault = CUDA_SUCCESS;         // of all contexts
  std::map<CUcontext, CUresult> faults;  // of one
  std::map<CUcontext, int> attached;     // so often, after it was made
  std::atomic<void (*)()> during_copy{nullptr};
  std::atomic<void (*)()> during_pinning{nullptr};
};

Gpu& TheGpu();

inline void* At(CUdeviceptr pointer) {
  return reinterpret_cast<void*>(pointer);
}

// The bytes of GPU memory that other processes use, as the environment's file
// says, and those of theirs that are imported here.
uint64_t OthersBytes();

// The GPUs that this process sees, in its order, as numbers among all.
std::vector<int> VisibleDevices();
std::string UuidText(int device);

// Contexts that this thread has pushed, the current one last.
std::vector<CUcontext>& Contexts();

// The current one; an error if there is none, or none any more.
CUresult GetCurrent(CUcontext* context);

void EndContext(CUcontext context);

// Its own fault, if it has one.
CUresult FaultOf(CUcontext context);

// Whether the current context's GPU can use the address: all but what is mapped
// without access for it.
bool Reaches(CUdeviceptr address);

// FAKE_CUDA_PEERS: whether the GPUs reach each other's memory. They do not when
// it is empty, and do with "1". With "refused" the driver says that they do, and
// fails to let them.
std::string Peers();

// A function of future.h; null when it is none of those that cuGetProcAddress
// calls otherwise than dlsym.
void* FindFuture(const std::string& name, int version);

// Counts the call named `call`, and says whether and how it has to fail.
CUresult Enter(const char* call);

#define FAKE_LOCK() const std::lock_guard lock(fake_cuda::TheGpu().mutex)

#define FAKE_ENTER()                                                     \
  FAKE_LOCK();                                                           \
  if (const CUresult result = Enter(__func__); result != CUDA_SUCCESS) { \
    return result;                                                       \
  }

}  // namespace fake_cuda

#endif  // GMB_TESTS_DEVICE_FAKE_CUDA_STATE_H_
