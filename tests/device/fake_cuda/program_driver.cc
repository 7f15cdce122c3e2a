#include <dlfcn.h>

#include <array>
#include <string>

#include "tests/device/fake_cuda/state.h"

// The part of a driver that programs use and our own code does not:
// lookups, captures, memory in a stream's order, pools.

using fake_cuda::Enter;
using fake_cuda::GetCurrent;
using fake_cuda::TheGpu;

#undef cuGetProcAddress
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxRelease

namespace {

CUmemoryPool DefaultPool() { return reinterpret_cast<CUmemoryPool>(0x77); }

CUresult AllocateFrom(CUmemoryPool pool, CUdeviceptr* address, size_t bytes) {
  const CUresult result = cuMemAlloc(address, bytes);
  FAKE_LOCK();
  if (result == CUDA_SUCCESS) TheGpu().from_pools[*address] = pool;
  return result;
}

CUmemoryPool CurrentPool(CUdevice device) {
  const auto set = TheGpu().current_pools.find(device);
  return set == TheGpu().current_pools.end() ? DefaultPool() : set->second;
}

CUresult AllocateFromCurrent(CUdeviceptr* address, size_t bytes) {
  CUdevice device = 0;
  if (const CUresult result = cuCtxGetDevice(&device); result != CUDA_SUCCESS)
    return result;
  FAKE_LOCK();
  return AllocateFrom(CurrentPool(device), address, bytes);
}

// This library, however the program has loaded it.
void* Self() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&Self), &info);
  return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

void* Find(const std::string& name, int version, cuuint64_t flags) {
  if (version < 11000 && name.rfind("cuDevicePrimaryCtx", 0) == 0) {
    return dlsym(Self(), name.c_str());
  }
  if (void* found = fake_cuda::FindFuture(name, version)) return found;
  const bool per_thread =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  for (const char* const suffix : {"_v2_ptsz", "_ptsz", "_v4", "_v2", ""}) {
    const bool of_thread =
        std::string(suffix).find("ptsz") != std::string::npos;
    if (of_thread && !per_thread) continue;
    if (void* found = dlsym(Self(), (name + suffix).c_str())) return found;
  }
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  *function = Find(name, version, flags);
  if (status != nullptr) {
    *status = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                   : CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return CUDA_SUCCESS;
}

// The function that its own lookups find, whatever is in front of it.
void* FakeCudaAddress(const char* name, int version) {
  return Find(name, version, 0);
}

CUresult cuGetProcAddress(const char* name, void** function, int version,
                          cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return cuMemAlloc(address, bytes);
}

CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width,
                         size_t height, unsigned) {
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc(address, *pitch * height);
}

CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* bytes,
                              CUdeviceptr address) {
  FAKE_ENTER();
  const auto behind = TheGpu().allocations.upper_bound(address);
  if (behind == TheGpu().allocations.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [at, memory] = *std::prev(behind);
  if (address - at >= memory.bytes) return CUDA_ERROR_INVALID_VALUE;
  *start = at;
  *bytes = memory.bytes;
  return CUDA_SUCCESS;
}

// Which access is not kept.
CUresult cuMemGetAccess(unsigned long long*, const CUmemLocation*,
                        CUdeviceptr) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
// Nor which handle is mapped where.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Of what is mapped there; a driver knows nothing of the rest.
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute what,
                               CUdeviceptr address) {
  FAKE_ENTER();
  const auto behind = TheGpu().mappings.upper_bound(address);
  if (behind == TheGpu().mappings.begin() ||
      address - std::prev(behind)->first >= std::prev(behind)->second) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (what == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
  } else if (what == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
    // That kernels of the current context can use.
    CUcontext context = nullptr;
    if (const CUresult result = GetCurrent(&context); result != CUDA_SUCCESS)
      return result;
    const auto& devices = TheGpu().accessible[std::prev(behind)->first];
    if (devices.count(TheGpu().contexts.at(context)) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    *static_cast<CUdeviceptr*>(data) = address;
  } else if (what == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
    *static_cast<CUdeviceptr*>(data) = std::prev(behind)->first;
  } else if (what == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
    *static_cast<size_t*>(data) = std::prev(behind)->second;
  } else if (what == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
    *static_cast<unsigned*>(data) = 0;  // of what is mapped
  } else if (what == CU_POINTER_ATTRIBUTE_CONTEXT) {
    *static_cast<CUcontext*>(data) = nullptr;  // likewise, and of no pool
  } else if (what == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
    *static_cast<CUmemoryPool*>(data) = nullptr;
  } else if (what == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) {
    *static_cast<unsigned long long*>(data) =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* what,
                                void** data, CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult result =
            cuPointerGetAttribute(data[i], what[i], address);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return AllocateFromCurrent(address, bytes);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream) {
  return AllocateFromCurrent(address, bytes);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes,
                                 CUmemoryPool pool, CUstream) {
  return AllocateFrom(pool, address, bytes);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  return cuMemFree(address);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream) {
  return cuMemFree(address);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps*) {
  FAKE_ENTER();
  *pool = reinterpret_cast<CUmemoryPool>(TheGpu().next_handle++);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return pool == DefaultPool() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_SUCCESS; }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  *pool = DefaultPool();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  FAKE_ENTER();
  *pool = CurrentPool(device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  FAKE_ENTER();
  TheGpu().current_pools[device] = pool;
  return CUDA_SUCCESS;
}

// Bytes are given back at once, so all that is reserved is used.
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute what,
                               void* value) {
  FAKE_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& bytes = *static_cast<cuuint64_t*>(value);
  bytes = 0;
  if (what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    bytes = TheGpu().release_thresholds[pool];
    return CUDA_SUCCESS;
  }
  for (const auto& [address, memory] : TheGpu().allocations) {
    const auto from = TheGpu().from_pools.find(address);
    if (from != TheGpu().from_pools.end() && from->second == pool)
      bytes += memory.bytes;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute what,
                               void* value) {
  FAKE_ENTER();
  const cuuint64_t bytes = *static_cast<cuuint64_t*>(value);
  if (what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    TheGpu().release_thresholds[pool] = bytes;
    return CUDA_SUCCESS;
  }
  return bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  FAKE_ENTER();
  TheGpu().capturing.insert(stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FAKE_ENTER();
  *graph = nullptr;
  return TheGpu().capturing.erase(stream) == 1 ? CUDA_SUCCESS
                                               : CUDA_ERROR_ILLEGAL_STATE;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_ENTER();
  *status = TheGpu().capturing.count(stream) == 1
                ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
