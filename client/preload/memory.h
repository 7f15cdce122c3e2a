#ifndef GMB_CLIENT_PRELOAD_MEMORY_H_
#define GMB_CLIENT_PRELOAD_MEMORY_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/broker_link.h"
#include "client/preload/captures.h"
#include "client/preload/contexts.h"
#include "client/preload/driver.h"
#include "client/preload/kept_memory.h"
#include "client/preload/live_blocks.h"
#include "client/preload/ordered_frees.h"
#include "client/preload/pool_usage.h"
#include "client/preload/small_blocks.h"
#include "client/preload/steady_budget.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The result of a call; nothing when the driver is to answer it.
using Answer = std::optional<CUresult>;

[[nodiscard]] Answer AnswerOf(Outcome outcome);
// Of BrokerLink::Export, as a result.
[[nodiscard]] CUresult SharingResult(Outcome outcome);
struct SharedBlock;

// The program's device memory, served from leases. One in a process, which
// lives as long as it does. Thread-safe; neither the driver nor the broker is
// waited for under the lock.
class Memory {
 public:
  // From this size on an allocation is a lease of its own.
  static constexpr uint64_t kSmallestLeaseBytes = uint64_t{1} << 20;
  // Larger allocations are refused without asking.
  static constexpr uint64_t kLargestBytes = uint64_t{1} << 62;

  explicit Memory(const Driver& driver)
      : driver_(driver),
        contexts_(driver, &captures_),
        broker_(&contexts_,
                [this](const std::string& device, uint64_t bytes) {
                  kept_.Trim(device, bytes);
                }),
        kept_(&captures_, KeepingHooks()) {}
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

  // Before a call that ends a context, and its events with it, which nothing
  // may touch from then on; null for any. Blocks that were freed there go back
  // with a Sweep after the call. See Captures::AwaitTurn. `lives`: it may go on.
  void ForgetEventsOf(CUcontext context, bool lives = false);
  // Whether memory of it was ever leased: then its primary context stays.
  [[nodiscard]] bool LeasedFrom(CUdevice device);

  [[nodiscard]] Answer GetInfo(size_t* free_bytes, size_t* total_bytes);
  // The part of a pool that is served here.
  [[nodiscard]] PoolUsage::Bytes BytesOf(CUmemoryPool pool);
  void ResetHighOf(CUmemoryPool pool, CUmemPool_attribute mark);
  void PoolDestroyed(CUmemoryPool pool);
  // False when the address is none of ours.
  [[nodiscard]] bool GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                     size_t* bytes);

  // The device of the allocation that the address is in, if it is one of ours.
  [[nodiscard]] std::optional<CUdevice> DeviceOf(CUdeviceptr address);
  // For another process of the tenant, by a handle of legacy CUDA IPC: its whole
  // lease, which then stays on the device. As cuIpcGetMemHandle.
  [[nodiscard]] Answer Share(CUdeviceptr address, SharedBlock* shared);
  // Whether it is a lease that Share has given, and that is not released yet.
  [[nodiscard]] bool HasExported(const internal::ExportedLease& exported);
  // Whether it is of an allocation that has such handles.
  [[nodiscard]] bool GivesHandles(CUdeviceptr address);
  // Whether it is of a lease, freed or not.
  [[nodiscard]] bool Contains(CUdeviceptr address);

  // Gives back what the program freed and this library still keeps; false when
  // that was nothing, or cannot be now. Waits for other threads that give back,
  // for at most 2 s.
  bool ReleaseKept();
  // The same for as much as is about to be asked for elsewhere.
  void MakeRoom(CUdevice device, uint64_t bytes) {
    kept_.MakeRoom(device, bytes);
  }
  // The same for what can go back now and could not before, and for what was
  // kept long enough.
  void Sweep();

  // As the broker writes it; empty when the driver does not say.
  [[nodiscard]] const std::string& UuidOf(CUdevice device);
  [[nodiscard]] BrokerLink& broker() { return broker_; }
  [[nodiscard]] KeptMemory& kept() { return kept_; }
  [[nodiscard]] Captures& captures() { return captures_; }
  [[nodiscard]] Contexts& contexts() { return contexts_; }

 private:
  // Of one allocation: for which device, and from which pool, if any.
  struct Source {
    CUdevice device = 0;
    CUmemoryPool pool = nullptr;
  };

  [[nodiscard]] Answer AllocateFrom(const Source& source, uint64_t bytes,
                                    CUdeviceptr* address);
  [[nodiscard]] Answer AllocateOnce(const Source& source, uint64_t bytes,
                                    CUdeviceptr* address);
  [[nodiscard]] Outcome AllocateLarge(const Source& source, uint64_t bytes,
                                      CUdeviceptr* address);
  [[nodiscard]] Outcome AllocateSmall(const Source& source, uint64_t bytes,
                                      CUdeviceptr* address);
  void Served(const Source& source, Block block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The program has it still: it could not be freed.
  void PutBack(const Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  [[nodiscard]] std::optional<Block> TakeLive(CUdeviceptr address, bool* ours);
  // All work that uses it must be done. A lease is kept for a moment, if the
  // program may soon ask for as much.
  enum class Then { kRelease, kKeep };
  void GiveBack(const Block& block, Then then = Then::kRelease);
  void GiveBack(const std::vector<OrderedFree>& freed);
  // False when that cannot be. Takes the events away that are lost.
  [[nodiscard]] bool Await(const std::vector<CUdevice>& devices,
                           std::vector<OrderedFree>* freed);
  void Release(const LeaseRange& lease);
  // Of a block that the program has; null: it has it no more.
  [[nodiscard]] LeaseRange* LeaseOf(const Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkShared(const Block& block, bool shared);
  [[nodiscard]] KeptMemory::Hooks KeepingHooks();
  void GiveAllBack();
  [[nodiscard]] uint64_t GivenBack();
  // For who has taken blocks off the books, until they are given back.
  class InHand;
  // Waits for those that give back now, not for such as begin meanwhile.
  void AwaitInHand(std::chrono::steady_clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Driver& driver_;
  Captures captures_;
  Contexts contexts_;
  BrokerLink broker_;
  KeptMemory kept_;
  // Held across the broker's answer to one who shares, before the gate: who is
  // refused must not undo what another one has got for the same lease.
  base::Mutex sharing_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;
  base::CondVar given_;
  // The tickets of the threads that give back.
  std::set<uint64_t> in_hand_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  // Leases, and blocks of chunks that stay, so far: what was refused before may
  // be had now.
  uint64_t given_back_ ABSL_GUARDED_BY(mu_) = 0;
  LiveBlocks live_ ABSL_GUARDED_BY(mu_);
  PoolUsage pools_ ABSL_GUARDED_BY(mu_);
  OrderedFrees ordered_ ABSL_GUARDED_BY(mu_);
  // Freed while a capture was under way, or in the order of a context that is
  // gone: to go back once the device is synchronised.
  std::vector<Block> unordered_ ABSL_GUARDED_BY(mu_);
  std::map<CUdevice, SmallBlocks> small_ ABSL_GUARDED_BY(mu_);
  std::map<const gmb_lease*, internal::ExportedLease> exported_
      ABSL_GUARDED_BY(mu_);
  std::set<CUdevice> leased_from_ ABSL_GUARDED_BY(mu_);
  std::map<CUdevice, std::string> uuids_ ABSL_GUARDED_BY(mu_);
  std::map<CUdevice, SteadyBudget> budgets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_MEMORY_H_
