#ifndef GMB_CLIENT_PRELOAD_VIRTUAL_MEMORY_H_
#define GMB_CLIENT_PRELOAD_VIRTUAL_MEMORY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/create_run.h"
#include "client/preload/driver.h"
#include "client/preload/ipc_handle.h"
#include "client/preload/memory.h"
#include "client/preload/pointer_answers.h"
#include "client/preload/virtual_handles.h"
#include "client/preload/virtual_slabs.h"
#include "client/preload/wait_left.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The memory that the program makes by cuMemCreate and maps itself, served from
// leases. Each function answers the driver's of that name; nothing where it is
// not about memory of ours. One in a process, which lives as long as it does.
// Thread-safe.
//
// Calls that touch memory, or that need it there, come in by the gate, so that
// they meet no memory that is away: mapping and setting access. Asking and
// giving back never wait for it, and never wake.
class VirtualMemory {
 public:
  // Handles are made in these units, as the driver's are.
  static constexpr uint64_t kUnitBytes = uint64_t{2} << 20;

  // Both live as long as it does.
  VirtualMemory(const Driver& driver, Memory& memory)
      : driver_(driver), memory_(memory), slabs_(driver) {}
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  // Of properties that leased memory can have.
  [[nodiscard]] Answer Create(CUmemGenericAllocationHandle* handle,
                              uint64_t bytes,
                              const CUmemAllocationProp& properties);
  // Of one that is kept: it goes back to the broker.
  void GoBack(const LeaseRange& kept);
  [[nodiscard]] Answer Release(CUmemGenericAllocationHandle handle);
  [[nodiscard]] Answer Retain(CUmemGenericAllocationHandle* handle,
                              CUdeviceptr address);
  [[nodiscard]] Answer GetProperties(CUmemAllocationProp* properties,
                                     CUmemGenericAllocationHandle handle);
  // `shareable` gets a file descriptor: of the memory itself, or, where that is
  // several slabs, one for Open. The memory stays on the device.
  [[nodiscard]] Answer Export(void* shareable,
                              CUmemGenericAllocationHandle handle,
                              CUmemAllocationHandleType type);
  // A handle for memory of another process, on `device`, of so many bytes.
  [[nodiscard]] CUresult Attach(const internal::ExportedLease& exported,
                                CUdevice device,
                                CUmemGenericAllocationHandle* handle,
                                uint64_t* bytes);
  // The same for the program, once more that which it has.
  [[nodiscard]] CUresult Open(const internal::ExportedLease& exported,
                              CUdevice device,
                              CUmemGenericAllocationHandle* handle);

  [[nodiscard]] Answer Map(CUdeviceptr start, uint64_t bytes, uint64_t offset,
                           CUmemGenericAllocationHandle handle, uint64_t flags);
  // Of any number of neighbours, with holes between them.
  [[nodiscard]] Answer Unmap(CUdeviceptr start, uint64_t bytes);
  [[nodiscard]] Answer SetAccess(CUdeviceptr start, uint64_t bytes,
                                 const CUmemAccessDesc* access, size_t count);
  [[nodiscard]] Answer GetAccess(unsigned long long* flags,
                                 const CUmemLocation* location,
                                 CUdeviceptr address);
  [[nodiscard]] Answer FreeAddresses(CUdeviceptr start, uint64_t bytes);

  // Its leases ask for these, as RangeHooks says (virtual_hooks.h).
  [[nodiscard]] CUresult Arrive(CUmemGenericAllocationHandle handle,
                                const int* fds, const uint64_t* slab_bytes,
                                size_t count);
  [[nodiscard]] CUresult Leave(CUmemGenericAllocationHandle handle);

  // False when the address is none of ours.
  [[nodiscard]] bool GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                     size_t* bytes);
  [[nodiscard]] bool Contains(CUdeviceptr address);
  // Of the mapping that the address is in, if it is one of ours.
  [[nodiscard]] std::optional<PointerKind> KindOf(CUdeviceptr address);

 private:
  using Slab = VirtualHandle::Slab;

  // With `asked`, of what was asked for ahead of need.
  [[nodiscard]] Answer CreateOnce(CUmemGenericAllocationHandle* handle,
                                  uint64_t bytes,
                                  const CUmemAllocationProp& properties,
                                  const WaitLeft& left,
                                  const LeaseRange* asked);
  // From what is kept, and from what is on its way; false when there is none.
  [[nodiscard]] bool TakeKept(CUmemGenericAllocationHandle* handle,
                              uint64_t bytes,
                              const CUmemAllocationProp& properties,
                              const WaitLeft& left);
  // So many are on their way then, if the broker has them.
  void AskAhead(CUdevice device, uint64_t bytes, size_t count);
  // For whoever asks for as much soon.
  void Keep(const LeaseRange& unused, CUdevice device);
  [[nodiscard]] CUresult UnmapOneByOne(
      CUdeviceptr start, uint64_t bytes,
      const std::vector<VirtualMapping>& mappings,
      std::vector<uint64_t>* unmapped);

  [[nodiscard]] CUresult ShareSlabs(const LeaseRange& lease,
                                    CUmemGenericAllocationHandle handle,
                                    SharedBlock* block, int* fd);
  // False: no program has it.
  bool MarkShared(CUmemGenericAllocationHandle handle, bool shared);

  const Driver& driver_;
  Memory& memory_;
  const VirtualSlabs slabs_;

  // As Memory's: one shares at a time.
  base::Mutex sharing_ ABSL_ACQUIRED_BEFORE(order_);
  // Held across the driver's calls that change what is mapped, so that the book
  // says what it did. After the gate, if at all: the mover needs it to bring
  // memory back. Never held while a lease is released.
  base::Mutex order_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;  // held for a moment only
  VirtualHandles book_ ABSL_GUARDED_BY(mu_);
  CreateRun run_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_VIRTUAL_MEMORY_H_
