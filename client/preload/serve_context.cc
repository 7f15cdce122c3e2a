#include "client/preload/exported.h"
#include "client/preload/serve.h"

// Ends of contexts: what was freed in the order of their streams is free then.

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::Exiting;
using gmb::preload::Memory;
using gmb::preload::TheMemory;

namespace {

// `end(&has_ended)` is the driver's call. No context ends while this library
// waits for the driver: that may be for an event of it.
template <typename End>
CUresult EndContext(const Driver& driver, CUcontext context, End end) {
  Memory& memory = TheMemory(driver);
  memory.captures().AwaitTurn();
  const auto freed = memory.BeforeEndOf(context);
  bool has_ended = false;
  const CUresult result = end(&has_ended);
  memory.captures().DidNotBegin();
  memory.AfterEnd(freed, has_ended);
  return result;
}

// The same for a device's primary context, which another thread may want again
// at once, and which a release leaves to those who retain it still.
template <typename End>
CUresult EndPrimary(CUdevice device, bool for_all, End end) {
  return AnswerCall(
      [](const Driver&) -> Answer { return std::nullopt; },
      [&](const Driver& driver) {
        CUcontext context = nullptr;
        if (Exiting() || !driver.HasPrimaryContext(device) ||
            driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
          return end(driver);
        }
        return EndContext(driver, context, [&](bool* has_ended) {
          const CUresult result = end(driver);
          driver.cuDevicePrimaryCtxRelease_v2(device);
          *has_ended = (for_all && result == CUDA_SUCCESS) ||
                       !driver.HasPrimaryContext(device);
          return result;
        });
      });
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): ours say
// more than those of cuda.h.
GMB_SERVED CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return EndPrimary(device, true, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxReset_v2, device);
  });
}

GMB_SERVED CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return EndPrimary(device, true, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxReset_v1, device);
  });
}

GMB_SERVED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return EndPrimary(device, false, [&](const Driver& driver) {
    return driver.cuDevicePrimaryCtxRelease_v2(device);
  });
}

GMB_SERVED CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return EndPrimary(device, false, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxRelease_v1, device);
  });
}

GMB_SERVED CUresult cuCtxDestroy_v2(CUcontext context) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      if (Exiting()) return driver.cuCtxDestroy_v2(context);
                      return EndContext(driver, context, [&](bool* has_ended) {
                        const CUresult result = driver.cuCtxDestroy_v2(context);
                        *has_ended = result == CUDA_SUCCESS;
                        return result;
                      });
                    });
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
