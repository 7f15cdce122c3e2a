#ifndef GMB_CLIENT_PRELOAD_MEMORY_H_
#define GMB_CLIENT_PRELOAD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/allocations.h"
#include "client/preload/answer.h"
#include "client/preload/broker_link.h"
#include "client/preload/captures.h"
#include "client/preload/contexts.h"
#include "client/preload/device_names.h"
#include "client/preload/driver.h"
#include "client/preload/freed_blocks.h"
#include "client/preload/kept_memory.h"
#include "client/preload/lease_exports.h"
#include "client/preload/lease_returns.h"
#include "client/preload/peer_devices.h"
#include "client/preload/steady_budget.h"
#include "client/preload/sweeper.h"
#include "client/preload/wait_left.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The program's device memory, served from leases: its calls, and the parts that
// serve them. One in a process, which lives as long as it does. Thread-safe; no
// part holds a lock while it waits for the driver or the broker, but for one of
// LeaseExports that only those who share take, and one of Sweeper for those who give
// back what pools have too much of.
class Memory {
 public:
  // From this size on an allocation is a lease of its own.
  static constexpr uint64_t kSmallestLeaseBytes = uint64_t{1} << 20;
  // Larger allocations are refused without asking.
  static constexpr uint64_t kLargestBytes = uint64_t{1} << 62;

  explicit Memory(const Driver& driver);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] Answer Allocate(CUdevice device, uint64_t bytes,
                                CUdeviceptr* address);
  // After all work that was submitted, like the driver.
  [[nodiscard]] Answer Free(CUdeviceptr address);

  // As cuMemAllocAsync and cuMemFreeAsync, with the stream's context current.
  // Captured ones are the driver's.
  [[nodiscard]] Answer AllocateOrdered(CUdevice device, uint64_t bytes,
                                       CUmemoryPool pool, CUstream stream,
                                       CUdeviceptr* address);
  [[nodiscard]] Answer FreeOrdered(CUdeviceptr address, CUstream stream);

  [[nodiscard]] Answer GetInfo(size_t* free_bytes, size_t* total_bytes);

  [[nodiscard]] Allocations& allocations() { return allocations_; }
  [[nodiscard]] BrokerLink& broker() { return broker_; }
  [[nodiscard]] Captures& captures() { return captures_; }
  [[nodiscard]] Contexts& contexts() { return contexts_; }
  [[nodiscard]] LeaseExports& exports() { return exports_; }
  [[nodiscard]] FreedBlocks& freed() { return freed_; }
  [[nodiscard]] KeptMemory& kept() { return kept_; }
  [[nodiscard]] DeviceNames& names() { return names_; }
  [[nodiscard]] Sweeper& sweeper() { return sweeper_; }

 private:
  using Source = Allocations::Source;

  [[nodiscard]] Answer AllocateFrom(const Source& source, uint64_t bytes,
                                    CUdeviceptr* address);
  [[nodiscard]] Answer AllocateOnce(const Source& source, uint64_t bytes,
                                    const WaitLeft& left, CUdeviceptr* address);
  [[nodiscard]] Outcome AllocateLarge(const Source& source, uint64_t bytes,
                                      const WaitLeft& left,
                                      CUdeviceptr* address);
  [[nodiscard]] Outcome AllocateSmall(const Source& source, uint64_t bytes,
                                      const WaitLeft& left,
                                      CUdeviceptr* address);
  // Of a lease that the GPU's peers may use as well; where the driver does not
  // let them, of one that is for the GPU alone.
  [[nodiscard]] Outcome Acquire(CUdevice device, uint64_t bytes,
                                const WaitLeft& left, LeaseRange* lease);
  [[nodiscard]] KeptMemory::Hooks KeepingHooks();

  const Driver& driver_;
  Captures captures_;
  Contexts contexts_;
  DeviceNames names_;
  PeerDevices peers_;
  BrokerLink broker_;
  Allocations allocations_;
  LeaseExports exports_;
  FreedBlocks freed_;
  KeptMemory kept_;
  LeaseReturns returns_;
  Sweeper sweeper_;
  base::Mutex mu_;
  std::map<CUdevice, SteadyBudget> budgets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_MEMORY_H_
