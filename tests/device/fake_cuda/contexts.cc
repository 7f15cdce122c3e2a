#include <algorithm>
#include <cstdlib>

#include "tests/device/fake_cuda/fake_cuda.h"
#include "tests/device/fake_cuda/state.h"

// The fake driver's contexts. Everything of a context ends with it, and work
// that was not done then is never done.

using fake_cuda::Contexts;
using fake_cuda::EndContext;
using fake_cuda::Enter;
using fake_cuda::TheGpu;

namespace {

CUcontext PrimaryContext(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<intptr_t>(device) + 1);
}

// A primary one that was reset is there for those who have retained it.
bool IsRetained(CUcontext context) {
  const auto& retained = TheGpu().retained;
  return std::any_of(
      retained.begin(), retained.end(), [context](const auto& one) {
        return one.second > 0 && PrimaryContext(one.first) == context;
      });
}

template <typename Map>
void EraseOf(CUcontext context, Map* map) {
  for (auto it = map->begin(); it != map->end();) {
    it = it->second.context == context ? map->erase(it) : std::next(it);
  }
}

}  // namespace

namespace fake_cuda {

std::vector<CUcontext>& Contexts() {
  thread_local std::vector<CUcontext> contexts;
  return contexts;
}

CUresult GetCurrent(CUcontext* context) {
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = Contexts().back();
  return TheGpu().contexts.count(*context) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult FaultOf(CUcontext context) {
  const auto fault = TheGpu().faults.find(context);
  return fault == TheGpu().faults.end() ? CUDA_SUCCESS : fault->second;
}

void EndContext(CUcontext context) {
  for (const auto& [name, stream] : TheGpu().streams) {
    if (stream.context == context) TheGpu().capturing.erase(name);
  }
  EraseOf(context, &TheGpu().events);
  EraseOf(context, &TheGpu().streams);
  TheGpu().contexts.erase(context);
  TheGpu().greens.erase(context);
  TheGpu().faults.erase(context);
  TheGpu().attached.erase(context);
}

}  // namespace fake_cuda

extern "C" {

void FakeCudaFaultHere(CUresult result) {
  FAKE_LOCK();
  TheGpu().faults[Contexts().back()] = result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER();
  if (const CUresult fault = fake_cuda::FaultOf(PrimaryContext(device));
      fault != CUDA_SUCCESS) {
    return fault;
  }
  ++TheGpu().retained[device];
  *context = PrimaryContext(device);
  TheGpu().contexts[*context] = device;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  FAKE_LOCK();
  int& retained = TheGpu().retained[device];
  if (retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--retained == 0) EndContext(PrimaryContext(device));
  return Enter(__func__);
}

// Those who retained it still do, as with the driver.
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  FAKE_ENTER();
  EndContext(PrimaryContext(device));
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                    int* active) {
  FAKE_ENTER();
  *flags = 0;
  *active = TheGpu().contexts.count(PrimaryContext(device)) == 1 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams_st*, unsigned,
                     CUdevice device) {
  FAKE_ENTER();
  *context = reinterpret_cast<CUcontext>(TheGpu().next_handle++);
  TheGpu().contexts[*context] = device;
  Contexts().push_back(*context);
  ++TheGpu().pushed_contexts;
  return CUDA_SUCCESS;
}

// One of the device's, by another name.
CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc, CUdevice device,
                          unsigned) {
  FAKE_ENTER();
  *green = reinterpret_cast<CUgreenCtx>(TheGpu().next_handle++);
  const auto context = reinterpret_cast<CUcontext>(*green);
  TheGpu().contexts[context] = device;
  TheGpu().greens[context] = PrimaryContext(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  FAKE_ENTER();
  *context = reinterpret_cast<CUcontext>(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  return cuCtxDestroy(reinterpret_cast<CUcontext>(green));
}

CUresult cuCtxDestroy(CUcontext context) {
  FAKE_LOCK();
  if (TheGpu().contexts.count(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  EndContext(context);
  if (!Contexts().empty() && Contexts().back() == context) {
    Contexts().pop_back();
    --TheGpu().pushed_contexts;
  }
  return Enter(__func__);
}

CUresult cuCtxAttach(CUcontext* context, unsigned) {
  FAKE_ENTER();
  const CUresult result = fake_cuda::GetCurrent(context);
  if (result == CUDA_SUCCESS) ++TheGpu().attached[*context];
  return result;
}

CUresult cuCtxDetach(CUcontext context) {
  FAKE_ENTER();
  CUcontext current = nullptr;
  const CUresult result = fake_cuda::GetCurrent(&current);
  if (result != CUDA_SUCCESS) return result;
  if (current != context) return CUDA_ERROR_INVALID_CONTEXT;
  if (TheGpu().attached[context]-- > 0) return CUDA_SUCCESS;
  return cuCtxDestroy(context);
}

// To use a context that is gone is undefined.
CUresult cuCtxPushCurrent(CUcontext context) {
  FAKE_ENTER();
  if (TheGpu().contexts.count(context) == 0 && !IsRetained(context))
    std::abort();
  Contexts().push_back(context);
  ++TheGpu().pushed_contexts;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  FAKE_LOCK();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = Contexts().back();
  Contexts().pop_back();
  --TheGpu().pushed_contexts;
  return Enter(__func__);
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_ENTER();
  *context = Contexts().empty() ? nullptr : Contexts().back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_ENTER();
  CUcontext current = nullptr;
  const CUresult result = fake_cuda::GetCurrent(&current);
  if (result == CUDA_SUCCESS) *device = TheGpu().contexts.at(current);
  return result;
}

}  // extern "C"
