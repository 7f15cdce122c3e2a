// `gmb run`: the functions that programs find instead of the driver's, for
// lookups and for memory, which is served from leases.
#include "client/preload/serve.h"

#include <limits>

#include "base/round_up.h"
#include "client/preload/exported.h"
#include "client/preload/ipc_memory.h"
#include "client/preload/known_functions.h"
#include "client/preload/newer_program.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

Memory& TheMemory(const Driver& driver) {
  static Memory& memory = *new Memory(driver);
  return memory;
}

Pools& ThePools() {
  static Pools& pools = *new Pools;
  return pools;
}

namespace {

// A function that the driver found becomes ours, or is put behind one.
void Replace(const char* symbol, int cuda_version, void** function) {
  if (symbol == nullptr || function == nullptr || *function == nullptr) return;
  NoteLookup(cuda_version);
  *function = InPlaceOf(symbol, *function);
}

// The driver's pitch on every GPU that can be leased.
constexpr size_t kPitchBytes = 512;

bool CanServePitch(size_t width, size_t height, unsigned element) {
  return width > 0 && height > 0 &&
         (element == 4 || element == 8 || element == 16) &&
         width <= Memory::kLargestBytes &&
         height <= Memory::kLargestBytes / (width + kPitchBytes);
}

}  // namespace
}  // namespace gmb::preload

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::OnCurrentDevice;
using gmb::preload::TheIpcMemory;
using gmb::preload::TheMemory;
using gmb::preload::TheVirtualMemory;

GMB_SERVED CUresult
cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                    cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  const CUresult result = GMB_REAL_CALL(*driver, cuGetProcAddress_v2, symbol,
                                        function, cuda_version, flags, status);
  if (result == CUDA_SUCCESS) {
    gmb::preload::Replace(symbol, cuda_version, function);
  }
  return result;
}

GMB_SERVED CUresult cuGetProcAddress(const char* symbol, void** function,
                                     int cuda_version, cuuint64_t flags) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  const CUresult result = GMB_REAL_CALL(*driver, cuGetProcAddress_v1, symbol,
                                        function, cuda_version, flags);
  if (result == CUDA_SUCCESS) {
    gmb::preload::Replace(symbol, cuda_version, function);
  }
  return result;
}

GMB_SERVED CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (address == nullptr || bytes == 0) return std::nullopt;
        return OnCurrentDevice(driver, [&](CUdevice device) {
          return TheMemory(driver).Allocate(device, bytes, address);
        });
      },
      [&](const Driver& driver) {
        return driver.cuMemAlloc_v2(address, bytes);
      });
}

GMB_SERVED CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch,
                                       size_t width, size_t height,
                                       unsigned int element) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        using gmb::preload::kPitchBytes;
        if (address == nullptr || pitch == nullptr ||
            !gmb::preload::CanServePitch(width, height, element)) {
          return std::nullopt;
        }
        const size_t row = gmb::base::RoundUp(width, kPitchBytes);
        return OnCurrentDevice(driver, [&](CUdevice device) {
          const Answer answer =
              TheMemory(driver).Allocate(device, row * height, address);
          if (answer == CUDA_SUCCESS) *pitch = row;
          return answer;
        });
      },
      [&](const Driver& driver) {
        return driver.cuMemAllocPitch_v2(address, pitch, width, height,
                                         element);
      });
}

GMB_SERVED CUresult cuMemFree_v2(CUdeviceptr address) {
  return AnswerCall(
      [&](const Driver& driver) { return TheMemory(driver).Free(address); },
      [&](const Driver& driver) { return driver.cuMemFree_v2(address); });
}

GMB_SERVED CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return AnswerCall(
      [&](const Driver& driver) {
        return TheMemory(driver).GetInfo(free_bytes, total_bytes);
      },
      [&](const Driver& driver) {
        return driver.cuMemGetInfo_v2(free_bytes, total_bytes);
      });
}

GMB_SERVED CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, size_t* bytes,
                                            CUdeviceptr address) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (TheMemory(driver).allocations().GetAddressRange(address, start,
                                                            bytes) ||
            TheIpcMemory(driver).GetAddressRange(address, start, bytes) ||
            TheVirtualMemory(driver).GetAddressRange(address, start, bytes)) {
          return CUDA_SUCCESS;
        }
        return std::nullopt;
      },
      [&](const Driver& driver) {
        return driver.cuMemGetAddressRange_v2(start, bytes, address);
      });
}
