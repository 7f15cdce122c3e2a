#include "client/preload/exported.h"
#include "client/preload/serve.h"

// Ends of contexts: what was freed in the order of their streams is free then.
// A release of a primary context is not served: it hardly ever ends one, since
// the client library has retained those of the devices that it leases from.

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::Exiting;
using gmb::preload::Memory;
using gmb::preload::TheMemory;

namespace {

// `end` is the driver's call. It may end the context and say an error, so
// whatever it says, nothing asks for the events any more: the driver crashes
// when it is asked for one of a context that is gone. No context ends while
// this library waits for the driver: that may be for an event of it.
template <typename End>
CUresult EndContext(const Driver& driver, CUcontext context, End end) {
  Memory& memory = TheMemory(driver);
  memory.captures().AwaitTurn();
  memory.ForgetEventsOf(context);
  const CUresult result = end();
  memory.captures().DidNotBegin();
  memory.Sweep();
  return result;
}

template <typename Reset>
CUresult ResetPrimary(CUdevice device, Reset reset) {
  return AnswerCall(
      [](const Driver&) -> Answer { return std::nullopt; },
      [&](const Driver& driver) {
        if (Exiting() || !driver.HasPrimaryContext(device)) {
          return reset(driver);
        }
        // To know its name. One that is at fault may not be retained any more.
        CUcontext context = nullptr;
        const bool retained =
            driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS;
        return EndContext(driver, retained ? context : nullptr, [&] {
          const CUresult result = reset(driver);
          if (retained) driver.cuDevicePrimaryCtxRelease_v2(device);
          return result;
        });
      });
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): ours say
// more than those of cuda.h.
GMB_SERVED CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return ResetPrimary(device, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxReset_v2, device);
  });
}

GMB_SERVED CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return ResetPrimary(device, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxReset_v1, device);
  });
}

GMB_SERVED CUresult cuCtxDestroy_v2(CUcontext context) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      const auto end = [&] {
                        return driver.cuCtxDestroy_v2(context);
                      };
                      if (Exiting() || context == nullptr) return end();
                      return EndContext(driver, context, end);
                    });
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
