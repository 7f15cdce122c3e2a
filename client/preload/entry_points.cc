// `gmb run`: the table of the driver's functions that are served.
#include "client/preload/entry_points.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "client/preload/driver.h"
#include "client/preload/exported.h"
#include "client/preload/find_symbol.h"

namespace gmb::preload {
namespace {

#define GMB_ENTRY(symbol) \
  EntryPoint { #symbol, reinterpret_cast < void*>(&::symbol) }
#define GMB_COUNTED_ENTRY(symbol) \
  EntryPoint { #symbol, reinterpret_cast < void*>(&::symbol), true }

const auto& Table() {
  static const std::array kTable = {
      GMB_ENTRY(cuGetProcAddress_v2),
      GMB_ENTRY(cuGetProcAddress),
      GMB_ENTRY(cuMemAlloc_v2),
      GMB_ENTRY(cuMemAllocPitch_v2),
      GMB_ENTRY(cuMemFree_v2),
      GMB_ENTRY(cuMemGetInfo_v2),
      GMB_ENTRY(cuMemGetAddressRange_v2),
      GMB_ENTRY(cuMemCreate),
      GMB_ENTRY(cuMemRelease),
      GMB_ENTRY(cuMemRetainAllocationHandle),
      GMB_ENTRY(cuMemGetAllocationPropertiesFromHandle),
      GMB_ENTRY(cuMemExportToShareableHandle),
      GMB_ENTRY(cuMemImportFromShareableHandle),
      GMB_ENTRY(cuMemMap),
      GMB_ENTRY(cuMemUnmap),
      GMB_ENTRY(cuMemSetAccess),
      GMB_ENTRY(cuMemGetAccess),
      GMB_ENTRY(cuMemAddressFree),
      GMB_ENTRY(cuIpcGetMemHandle),
      GMB_ENTRY(cuIpcOpenMemHandle_v2),
      GMB_ENTRY(cuIpcOpenMemHandle),
      GMB_ENTRY(cuIpcCloseMemHandle),
      GMB_ENTRY(cuDeviceGetAttribute),
      GMB_ENTRY(cuMemAllocAsync),
      GMB_ENTRY(cuMemAllocAsync_ptsz),
      GMB_ENTRY(cuMemAllocFromPoolAsync),
      GMB_ENTRY(cuMemAllocFromPoolAsync_ptsz),
      GMB_ENTRY(cuMemFreeAsync),
      GMB_ENTRY(cuMemFreeAsync_ptsz),
      GMB_ENTRY(cuMemPoolCreate),
      GMB_ENTRY(cuMemPoolDestroy),
      GMB_ENTRY(cuMemPoolTrimTo),
      GMB_ENTRY(cuMemPoolGetAttribute),
      GMB_ENTRY(cuMemPoolSetAttribute),
      GMB_ENTRY(cuDevicePrimaryCtxReset_v2),
      GMB_ENTRY(cuDevicePrimaryCtxReset),
      GMB_ENTRY(cuDevicePrimaryCtxRelease_v2),
      GMB_ENTRY(cuDevicePrimaryCtxRelease),
      GMB_ENTRY(cuCtxDestroy_v2),
      GMB_ENTRY(cuCtxDestroy),
      GMB_ENTRY(cuCtxAttach),
      GMB_ENTRY(cuCtxDetach),
      GMB_ENTRY(cuGreenCtxDestroy),
      GMB_ENTRY(cuStreamDestroy_v2),
      GMB_ENTRY(cuStreamDestroy),
      GMB_ENTRY(cuStreamBeginCapture_v2),
      GMB_ENTRY(cuStreamBeginCapture_v2_ptsz),
      GMB_ENTRY(cuStreamBeginCapture),
      GMB_ENTRY(cuStreamBeginCapture_ptsz),
      GMB_ENTRY(cuStreamBeginCaptureToGraph),
      GMB_ENTRY(cuStreamBeginCaptureToGraph_ptsz),
      GMB_ENTRY(cuStreamEndCapture),
      GMB_ENTRY(cuStreamEndCapture_ptsz),
      GMB_COUNTED_ENTRY(cuStreamSynchronize),
      GMB_COUNTED_ENTRY(cuStreamSynchronize_ptsz),
      GMB_COUNTED_ENTRY(cuEventSynchronize),
      GMB_COUNTED_ENTRY(cuCtxSynchronize),
      GMB_COUNTED_ENTRY(cuCtxSynchronize_v2),
  };
  return kTable;
}

#undef GMB_ENTRY
#undef GMB_COUNTED_ENTRY

constexpr size_t kServedCount =
    std::tuple_size_v<std::decay_t<decltype(Table())>>;

// Every lookup of the program passes here.
bool MayBeOurs(const char* name) { return name[0] == 'c' && name[1] == 'u'; }

// Null for those that this driver lacks.
std::array<std::atomic<void*>, kServedCount> reals{};

}  // namespace

void LoadServedFunctions(void* library) {
  for (size_t place = 0; place < kServedCount; ++place) {
    reals[place].store(RealSymbol(library, Table()[place].symbol),
                       std::memory_order_relaxed);
  }
}

const EntryPoint* FindBySymbol(const char* symbol) {
  if (!MayBeOurs(symbol)) return nullptr;
  const auto* const found = std::find_if(
      Table().begin(), Table().end(),
      [&](const auto& one) { return std::strcmp(one.symbol, symbol) == 0; });
  return found == Table().end() ? nullptr : found;
}

const EntryPoint* FindByReal(void* real) {
  for (size_t place = 0; place < kServedCount; ++place) {
    if (reals[place].load(std::memory_order_relaxed) == real)
      return &Table()[place];
  }
  return nullptr;
}

}  // namespace gmb::preload
