// `gmb run`: leases for allocations and frees in the order of a stream.
#include "client/preload/exported.h"
#include "client/preload/serve.h"

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::InContextOf;
using gmb::preload::OfThread;
using gmb::preload::OnCurrentDevice;
using gmb::preload::TheMemory;
using gmb::preload::ThePools;

namespace {

CUresult Allocate(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (address == nullptr || bytes == 0) return std::nullopt;
        return InContextOf(driver, stream, [&] {
          return OnCurrentDevice(driver, [&](CUdevice device) -> Answer {
            CUmemoryPool pool = nullptr;  // the device's current one
            if (GMB_REAL_CALL(driver, cuDeviceGetMemPool, &pool, device) !=
                CUDA_SUCCESS) {
              pool = nullptr;
            } else if (!ThePools().DeviceOf(driver, pool).has_value()) {
              return std::nullopt;
            }
            return TheMemory(driver).AllocateOrdered(device, bytes, pool,
                                                     stream, address);
          });
        });
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemAllocAsync, address, bytes, stream);
      });
}

CUresult AllocateFrom(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                      CUstream stream) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (address == nullptr || bytes == 0) return std::nullopt;
        return InContextOf(driver, stream, [&]() -> Answer {
          const auto device = ThePools().DeviceOf(driver, pool);
          if (!device.has_value()) return std::nullopt;
          return TheMemory(driver).AllocateOrdered(*device, bytes, pool, stream,
                                                   address);
        });
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemAllocFromPoolAsync, address, bytes,
                             pool, stream);
      });
}

CUresult Free(CUdeviceptr address, CUstream stream) {
  return AnswerCall(
      [&](const Driver& driver) {
        return InContextOf(driver, stream, [&] {
          return TheMemory(driver).FreeOrdered(address, stream);
        });
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemFreeAsync, address, stream);
      });
}

}  // namespace

GMB_SERVED CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes,
                                    CUstream stream) {
  return Allocate(address, bytes, stream);
}

GMB_SERVED CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                         CUstream stream) {
  return Allocate(address, bytes, OfThread(stream));
}

GMB_SERVED CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes,
                                            CUmemoryPool pool,
                                            CUstream stream) {
  return AllocateFrom(address, bytes, pool, stream);
}

GMB_SERVED CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address,
                                                 size_t bytes,
                                                 CUmemoryPool pool,
                                                 CUstream stream) {
  return AllocateFrom(address, bytes, pool, OfThread(stream));
}

GMB_SERVED CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return Free(address, stream);
}

GMB_SERVED CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return Free(address, OfThread(stream));
}
