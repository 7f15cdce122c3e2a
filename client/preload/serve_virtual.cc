// `gmb run`: the functions of virtual memory management: handles of leased
// memory, and where they are mapped.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "client/preload/ipc_memory.h"
#include "client/preload/not_possible.h"
#include "client/preload/program_gate.h"
#include "client/preload/serve.h"
#include "client/preload/settings.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

VirtualMemory& TheVirtualMemory(const Driver& driver) {
  static VirtualMemory& memory = *new VirtualMemory(driver, TheMemory(driver));
  return memory;
}

namespace {

// Older headers lack them.
constexpr unsigned long long kFabricHandle = 8;
constexpr int kFabricSupported = 128;

enum class Maker { kUs, kDriver, kNobody };

// Only plain device memory is leased. A handle for other machines could not be
// made of it; programs that ask for one try again without.
Maker MakerOf(const CUmemAllocationProp& properties, size_t bytes,
              unsigned long long flags) {
  constexpr unsigned long long kKnownHandles =
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | kFabricHandle;
  const auto handles =
      static_cast<unsigned long long>(properties.requestedHandleTypes);
  if (flags != 0 || bytes == 0 || bytes % VirtualMemory::kUnitBytes != 0 ||
      properties.type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      properties.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE ||
      properties.allocFlags.usage != 0 || (handles & ~kKnownHandles) != 0) {
    return Maker::kDriver;
  }
  return (handles & kFabricHandle) == 0 ? Maker::kUs : Maker::kNobody;
}

// NCCL opens its buffers to other processes, which leased memory cannot be. They
// are few, and never idle.
bool IsOfNccl(void* caller) {
  Dl_info where{};
  return dladdr(caller, &where) != 0 && where.dli_fname != nullptr &&
         std::strstr(where.dli_fname, "libnccl") != nullptr;
}

Answer Create(const Driver& driver, CUmemGenericAllocationHandle* handle,
              size_t bytes, const CUmemAllocationProp* properties,
              unsigned long long flags, void* caller) {
  if (handle == nullptr || properties == nullptr || TheSettings().native_vmm)
    return std::nullopt;
  const Maker maker = MakerOf(*properties, bytes, flags);
  if (maker == Maker::kDriver || IsOfNccl(caller)) return std::nullopt;
  if (maker == Maker::kUs) {
    return TheVirtualMemory(driver).Create(handle, bytes, *properties);
  }
  Memory& memory = TheMemory(driver);
  const Outcome offered = memory.broker().OffersUnmapped(
      memory.names().UuidOf(properties->location.id));
  if (offered != Outcome::kDone) return AnswerOf(offered);
  SayNoFabricHandle();
  return CUDA_ERROR_NOT_SUPPORTED;
}

// From then on others may wait on the GPU for what this process does; when it
// has let go of the last is not known. NCCL's ranks are parked by their group.
CUresult Import(const Driver& driver, CUmemGenericAllocationHandle* handle,
                void* shareable, CUmemAllocationHandleType type, void* caller) {
  const CUresult result = GMB_REAL_CALL(driver, cuMemImportFromShareableHandle,
                                        handle, shareable, type);
  static std::atomic<bool> shares{false};
  if (result == CUDA_SUCCESS && !IsOfNccl(caller) && !shares.exchange(true))
    ProgramGate::Share(1);
  return result;
}

}  // namespace
}  // namespace gmb::preload

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::TheIpcMemory;
using gmb::preload::TheVirtualMemory;

GMB_SERVED CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                                size_t bytes,
                                const CUmemAllocationProp* properties,
                                unsigned long long flags) {
  void* const caller = __builtin_return_address(0);
  return AnswerCall(
      [&](const Driver& driver) {
        return gmb::preload::Create(driver, handle, bytes, properties, flags,
                                    caller);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemCreate, handle, bytes, properties,
                             flags);
      });
}

GMB_SERVED CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).Release(handle);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemRelease, handle);
      });
}

// The driver would give the slab's handle for what is leased otherwise. Memory
// of cudaMalloc has none.
GMB_SERVED CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* at) {
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (gmb::preload::TheMemory(driver).allocations().Contains(address))
          return CUDA_ERROR_INVALID_VALUE;
        return TheVirtualMemory(driver).Retain(handle, address);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemRetainAllocationHandle, handle, at);
      });
}

GMB_SERVED CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).GetProperties(properties, handle);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemGetAllocationPropertiesFromHandle,
                             properties, handle);
      });
}

GMB_SERVED CUresult cuMemExportToShareableHandle(
    void* shareable, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).Export(shareable, handle, type);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemExportToShareableHandle, shareable,
                             handle, type, flags);
      });
}

GMB_SERVED CUresult cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle* handle, void* shareable,
    CUmemAllocationHandleType type) {
  void* const caller = __builtin_return_address(0);
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (handle == nullptr ||
            type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
          return std::nullopt;
        }
        return TheIpcMemory(driver).Import(
            handle, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
      },
      [&](const Driver& driver) {
        return gmb::preload::Import(driver, handle, shareable, type, caller);
      });
}

GMB_SERVED CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle,
                             unsigned long long flags) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).Map(start, bytes, offset, handle,
                                            flags);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemMap, start, bytes, offset, handle,
                             flags);
      });
}

GMB_SERVED CUresult cuMemUnmap(CUdeviceptr start, size_t bytes) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).Unmap(start, bytes);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemUnmap, start, bytes);
      });
}

GMB_SERVED CUresult cuMemSetAccess(CUdeviceptr start, size_t bytes,
                                   const CUmemAccessDesc* access,
                                   size_t count) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).SetAccess(start, bytes, access, count);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemSetAccess, start, bytes, access,
                             count);
      });
}

GMB_SERVED CUresult cuMemGetAccess(unsigned long long* flags,
                                   const CUmemLocation* location,
                                   CUdeviceptr address) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).GetAccess(flags, location, address);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemGetAccess, flags, location, address);
      });
}

GMB_SERVED CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheVirtualMemory(driver).FreeAddresses(start, bytes);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemAddressFree, start, bytes);
      });
}

// So that programs do not ask for handles that leased memory cannot have.
GMB_SERVED CUresult cuDeviceGetAttribute(int* value,
                                         CUdevice_attribute attribute,
                                         CUdevice device) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  const CUresult result =
      driver->cuDeviceGetAttribute(value, attribute, device);
  if (result == CUDA_SUCCESS &&
      static_cast<int>(attribute) == gmb::preload::kFabricSupported &&
      !gmb::preload::TheSettings().native_vmm) {
    *value = 0;
  }
  return result;
}
