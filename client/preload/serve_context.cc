// `gmb run`: ends of contexts. Their memory ends with them; what was freed in the
// order of their streams is free then, and nobody may wait for their work any
// more.
#include <vector>

#include "client/preload/exported.h"
#include "client/preload/home_context.h"
#include "client/preload/program_gate.h"
#include "client/preload/serve.h"

using gmb::base::CancelsLater;
using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Block;
using gmb::preload::Driver;
using gmb::preload::Exiting;
using gmb::preload::HomeContext;
using gmb::preload::Memory;
using gmb::preload::ProgramGate;
using gmb::preload::SynchronizingTurn;
using gmb::preload::TheMemory;

namespace {

// The memory that the program has in a context, while that ends: as the driver's
// own, nobody can free it any more. One of Ended and Stayed follows.
class MemoryOfContext {
 public:
  MemoryOfContext(Memory* memory, const HomeContext& home)
      : memory_(*memory),
        home_(home),
        blocks_(memory->allocations().TakeOf(home)) {}

  void Ended() {
    for (Block& block : blocks_) {
      block.home = {.kind = HomeContext::Kind::kEnded};
      memory_.freed().Add(block);
    }
    memory_.freed().Ended(home_);
  }
  // Perhaps: the driver said an error.
  void Stayed() {
    for (Block& block : blocks_) {
      block.home = {};
      memory_.allocations().PutBack(block);
    }
  }

 private:
  Memory& memory_;
  const HomeContext home_;
  std::vector<Block> blocks_;
};

// Then no context ends, and none is captured in.
void TakeWhatIsDone(const Driver& driver, Memory* memory, CUcontext context) {
  const SynchronizingTurn turn(&memory->captures());
  if (turn.granted()) memory->freed().TakeDoneOf(driver, context);
}

// `end` is the driver's call. It may end the context and say an error, so
// whatever it says, nothing asks for the events any more: the driver crashes
// when it is asked for one of a context that is gone. No context ends while
// this library waits for the driver: that may be for an event of it. `context`
// is null for a primary one without a name.
template <typename End>
CUresult EndContext(const Driver& driver, CUcontext context,
                    const HomeContext& home, End end) {
  const CancelsLater cancels_later;  // it has a turn
  Memory& memory = TheMemory(driver);
  const bool named = context != nullptr;
  if (named) TakeWhatIsDone(driver, &memory, context);
  memory.captures().AwaitTurn();
  // Without a name those of all contexts, also of such as live on.
  memory.freed().ForgetEventsOf(driver, context, false);
  if (named) {
    memory.contexts().Ending(context);
  } else {
    ProgramGate::NeverPark("a context at fault was reset");
    memory.contexts().EndingPrimary(home.device);
  }
  MemoryOfContext its_memory(&memory, home);
  const CUresult result = end();
  if (result == CUDA_SUCCESS) {
    its_memory.Ended();
  } else {
    its_memory.Stayed();
  }
  if (result == CUDA_SUCCESS && named) memory.captures().ContextEnded(context);
  if (result == CUDA_SUCCESS && !named) {
    memory.captures().PrimaryEnded(home.device,
                                   memory.contexts().CreatedOn(home.device));
  }
  memory.captures().DidNotBegin();
  if (result != CUDA_SUCCESS)
    ProgramGate::NeverPark("a context could not be ended");
  memory.sweeper().Sweep();
  return result;
}

// A green one's memory is the primary one's, and stays.
template <typename End>
CUresult EndContext(const Driver& driver, CUcontext context, End end) {
  return EndContext(driver, context,
                    {.kind = HomeContext::Kind::kMade, .made = context}, end);
}

// Another thread's detach may be the last when this one is made: so it has its
// turn, too.
template <typename End>
CUresult DetachFrom(const Driver& driver, CUcontext context, End end) {
  ProgramGate::NeverPark("it called cuCtxDetach");
  Memory& memory = TheMemory(driver);
  if (memory.contexts().DetachesLast(context))
    return EndContext(driver, context, end);
  const CancelsLater cancels_later;
  memory.captures().AwaitTurn();
  const CUresult result = end();
  memory.captures().DidNotBegin();
  if (result != CUDA_SUCCESS) memory.contexts().Attached(context);
  return result;
}

// The client library has retained those of the devices that it leases from:
// these do not end by it, and what was freed in their order stays so.
template <typename Release>
CUresult ReleasePrimary(CUdevice device, Release release) {
  return AnswerCall(
      [](const Driver&) -> Answer { return std::nullopt; },
      [&](const Driver& driver) {
        CUcontext context = nullptr;
        if (Exiting() || !driver.HasPrimaryContext(device) ||
            driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
          return release(driver);
        }
        const CancelsLater cancels_later;  // it has a turn
        Memory& memory = TheMemory(driver);
        if (!memory.allocations().LeasedFrom(device))
          TakeWhatIsDone(driver, &memory, context);
        memory.captures().AwaitTurn();
        const bool may_end = !memory.allocations().LeasedFrom(device);
        if (may_end) memory.freed().ForgetEventsOf(driver, context, true);
        memory.contexts().Ending(context);
        driver.cuDevicePrimaryCtxRelease_v2(device);
        const CUresult result = release(driver);
        if (!driver.HasPrimaryContext(device))
          memory.captures().ContextEnded(context);
        memory.captures().DidNotBegin();
        if (may_end) memory.sweeper().Sweep();
        return result;
      });
}

template <typename End>
CUresult Destroy(CUcontext context, End end) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      if (Exiting() || context == nullptr) return end(driver);
                      return EndContext(driver, context,
                                        [&] { return end(driver); });
                    });
}

CUresult DestroyGreen(CUgreenCtx green) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      const auto end = [&] {
                        return GMB_REAL_CALL(driver, cuGreenCtxDestroy, green);
                      };
                      CUcontext context = nullptr;
                      // Under this name its streams' events were recorded.
                      if (Exiting() || green == nullptr ||
                          GMB_REAL_CALL(driver, cuCtxFromGreenCtx, &context,
                                        green) != CUDA_SUCCESS) {
                        return end();
                      }
                      return EndContext(driver, context, end);
                    });
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
        return EndContext(
            driver, retained ? context : nullptr,
            {.kind = HomeContext::Kind::kPrimary, .device = device}, [&] {
              const CUresult result = reset(driver);
              if (retained) driver.cuDevicePrimaryCtxRelease_v2(device);
              return result;
            });
      });
}

}  // namespace

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

GMB_SERVED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return ReleasePrimary(device, [&](const Driver& driver) {
    return driver.cuDevicePrimaryCtxRelease_v2(device);
  });
}

GMB_SERVED CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return ReleasePrimary(device, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuDevicePrimaryCtxRelease_v1, device);
  });
}

GMB_SERVED CUresult cuCtxDestroy_v2(CUcontext context) {
  return Destroy(context, [&](const Driver& driver) {
    return driver.cuCtxDestroy_v2(context);
  });
}

GMB_SERVED CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  return DestroyGreen(context);
}

GMB_SERVED CUresult cuCtxDestroy(CUcontext context) {
  return Destroy(context, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuCtxDestroy_v1, context);
  });
}

GMB_SERVED CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      const CUresult result =
                          GMB_REAL_CALL(driver, cuCtxAttach, context, flags);
                      if (result == CUDA_SUCCESS && !Exiting())
                        TheMemory(driver).contexts().Attached(*context);
                      return result;
                    });
}

GMB_SERVED CUresult cuCtxDetach(CUcontext context) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      const auto end = [&] {
                        return GMB_REAL_CALL(driver, cuCtxDetach, context);
                      };
                      if (Exiting() || context == nullptr) return end();
                      return DetachFrom(driver, context, end);
                    });
}
