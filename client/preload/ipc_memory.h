#ifndef GMB_CLIENT_PRELOAD_IPC_MEMORY_H_
#define GMB_CLIENT_PRELOAD_IPC_MEMORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/driver.h"
#include "client/preload/ipc_handle.h"
#include "client/preload/memory.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

// Legacy CUDA IPC (cuIpcGetMemHandle and its like), and the import of handles of
// several slabs, of memory that is served from leases, between `gmb run` processes of one tenant. A process that opens a handle
// attaches to the lease. The lease stays on the device, and lives until the last
// process that has it lets go of it. A process has one IpcMemory, which lives as
// long as the process. Thread-safe. Each function does what the driver's of that
// name does, and returns nothing where the call is not about memory of ours.
class IpcMemory {
 public:
  // All live as long as it does.
  IpcMemory(const Driver& driver, Memory& memory, VirtualMemory& mapper)
      : driver_(driver), memory_(memory), mapper_(mapper) {}
  IpcMemory(const IpcMemory&) = delete;
  IpcMemory& operator=(const IpcMemory&) = delete;

  [[nodiscard]] Answer GetHandle(CUipcMemHandle* handle, CUdeviceptr address);
  // For the device of the current context.
  [[nodiscard]] Answer Open(CUdeviceptr* address, const CUipcMemHandle& handle,
                            unsigned flags);
  [[nodiscard]] Answer Close(CUdeviceptr address);
  // Of a file descriptor that stands for a handle of cuMemCreate in another
  // process.
  [[nodiscard]] Answer Import(CUmemGenericAllocationHandle* handle,
                              int descriptor);
  // Unmaps what could not be when it was closed, and can now.
  void Sweep();

  // Of an allocation of another process that is open here; false when the
  // address is of none.
  [[nodiscard]] bool GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                     size_t* bytes);

 private:
  // A lease of another process, mapped here once for all who opened it.
  struct Attached {
    CUmemGenericAllocationHandle handle = 0;
    CUdevice device = 0;
    uint64_t start = 0;
    uint64_t bytes = 0;
    std::set<CUdevice> users;  // devices that may reach it
    uint64_t opened = 0;
  };
  // An allocation in it, at the address that the program was told.
  struct Opened {
    LeaseName lease;
    uint64_t bytes = 0;
    uint64_t count = 0;
  };

  [[nodiscard]] std::optional<CUdevice> DeviceOf(const CUuuid& uuid) const;
  [[nodiscard]] CUresult Attach(const SharedBlock& block, CUdevice user,
                                Attached* attached);
  [[nodiscard]] CUresult MapAttached(CUdevice user, Attached* attached);
  // Nothing leads to it any more.
  void Detach(const Attached& attached);
  // Detaches those that are over, as far as that can be now.
  void DetachOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(opening_);
  [[nodiscard]] bool Await(const std::set<CUdevice>& devices) const;

  const Driver& driver_;
  Memory& memory_;
  VirtualMemory& mapper_;

  // Held while a lease is attached and mapped: who opens the same one at the
  // same time gets the same addresses. Before the gate, if at all: nothing that
  // brings memory back takes it.
  base::Mutex opening_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;  // for a moment only
  std::map<LeaseName, Attached> attached_ ABSL_GUARDED_BY(mu_);
  // Closed, and mapped still: its work is to be waited for. A call that opens
  // one has it again.
  std::map<LeaseName, Attached> over_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Opened> opened_ ABSL_GUARDED_BY(mu_);  // by address
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_IPC_MEMORY_H_
