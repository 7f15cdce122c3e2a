// `gmb run`: the table of the driver's functions that are served.
#include "client/preload/entry_points.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "client/preload/driver.h"
#include "client/preload/exported.h"

namespace gmb::preload {
namespace {

#define GMB_ENTRY(symbol, name, since)                                \
  EntryPoint {                                                        \
#symbol, name, since, false, reinterpret_cast < void*>(&::symbol) \
  }
#define GMB_THREAD_ENTRY(symbol, name, since)                        \
  EntryPoint {                                                       \
#symbol, name, since, true, reinterpret_cast < void*>(&::symbol) \
  }

// Of one name the newer function comes first.
const auto& Table() {
  static const std::array kTable = {
      GMB_ENTRY(cuGetProcAddress_v2, "cuGetProcAddress", 12000),
      GMB_ENTRY(cuGetProcAddress, "cuGetProcAddress", 11030),
      GMB_ENTRY(cuMemAlloc_v2, "cuMemAlloc", 3020),
      GMB_ENTRY(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020),
      GMB_ENTRY(cuMemFree_v2, "cuMemFree", 3020),
      GMB_ENTRY(cuMemGetInfo_v2, "cuMemGetInfo", 3020),
      GMB_ENTRY(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020),
      GMB_ENTRY(cuMemCreate, "cuMemCreate", 10020),
      GMB_ENTRY(cuMemRelease, "cuMemRelease", 10020),
      GMB_ENTRY(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle",
                11000),
      GMB_ENTRY(cuMemGetAllocationPropertiesFromHandle,
                "cuMemGetAllocationPropertiesFromHandle", 10020),
      GMB_ENTRY(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",
                10020),
      GMB_ENTRY(cuMemImportFromShareableHandle,
                "cuMemImportFromShareableHandle", 10020),
      GMB_ENTRY(cuMemMap, "cuMemMap", 10020),
      GMB_ENTRY(cuMemUnmap, "cuMemUnmap", 10020),
      GMB_ENTRY(cuMemSetAccess, "cuMemSetAccess", 10020),
      GMB_ENTRY(cuMemGetAccess, "cuMemGetAccess", 10020),
      GMB_ENTRY(cuMemAddressFree, "cuMemAddressFree", 10020),
      GMB_ENTRY(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010),
      GMB_ENTRY(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000),
      GMB_ENTRY(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010),
      GMB_ENTRY(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010),
      GMB_ENTRY(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000),
      GMB_ENTRY(cuMemAllocAsync, "cuMemAllocAsync", 11020),
      GMB_THREAD_ENTRY(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020),
      GMB_ENTRY(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020),
      GMB_THREAD_ENTRY(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync",
                       11020),
      GMB_ENTRY(cuMemFreeAsync, "cuMemFreeAsync", 11020),
      GMB_THREAD_ENTRY(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020),
      GMB_ENTRY(cuMemPoolCreate, "cuMemPoolCreate", 11020),
      GMB_ENTRY(cuMemPoolDestroy, "cuMemPoolDestroy", 11020),
      GMB_ENTRY(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020),
      GMB_ENTRY(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020),
      GMB_ENTRY(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020),
      GMB_ENTRY(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000),
      GMB_ENTRY(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000),
      GMB_ENTRY(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease",
                11000),
      GMB_ENTRY(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000),
      GMB_ENTRY(cuCtxDestroy_v2, "cuCtxDestroy", 4000),
      GMB_ENTRY(cuCtxDestroy, "cuCtxDestroy", 2000),
      GMB_ENTRY(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040),
      GMB_ENTRY(cuStreamDestroy_v2, "cuStreamDestroy", 4000),
      GMB_ENTRY(cuStreamDestroy, "cuStreamDestroy", 2000),
      GMB_ENTRY(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010),
      GMB_THREAD_ENTRY(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture",
                       10010),
      GMB_ENTRY(cuStreamBeginCapture, "cuStreamBeginCapture", 10000),
      GMB_THREAD_ENTRY(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture",
                       10000),
      GMB_ENTRY(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph",
                12030),
      GMB_THREAD_ENTRY(cuStreamBeginCaptureToGraph_ptsz,
                       "cuStreamBeginCaptureToGraph", 12030),
      GMB_ENTRY(cuStreamEndCapture, "cuStreamEndCapture", 10000),
      GMB_THREAD_ENTRY(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000),
  };
  return kTable;
}

#undef GMB_ENTRY
#undef GMB_THREAD_ENTRY

// Every lookup of the program passes here.
bool MayBeOurs(const char* name) { return name[0] == 'c' && name[1] == 'u'; }

template <typename Predicate>
const EntryPoint* Find(Predicate matches) {
  const auto found = std::find_if(Table().begin(), Table().end(), matches);
  return found == Table().end() ? nullptr : &*found;
}

}  // namespace

const EntryPoint* FindBySymbol(const char* symbol) {
  if (!MayBeOurs(symbol)) return nullptr;
  return Find([symbol](const EntryPoint& entry) {
    return std::strcmp(entry.symbol, symbol) == 0;
  });
}

const EntryPoint* FindByName(const char* name, int cuda_version,
                             uint64_t flags) {
  if (!MayBeOurs(name)) return nullptr;
  const auto find = [&](bool per_thread) {
    return Find([&](const EntryPoint& entry) {
      return entry.per_thread == per_thread && cuda_version >= entry.since &&
             std::strcmp(entry.name, name) == 0;
    });
  };
  const bool wants_per_thread =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const EntryPoint* const found = wants_per_thread ? find(true) : nullptr;
  if (found != nullptr) return found;
  const EntryPoint* const plain = find(false);
  return plain != nullptr ? plain : FindBySymbol(name);
}

}  // namespace gmb::preload
