#include "tests/device/fake_cuda/fake_cuda.h"

#include <cstring>

#include "tests/device/fake_cuda/state.h"

// The GPU, its context, and copies.

namespace fake_cuda {

Gpu& TheGpu() {
  static Gpu& gpu = *new Gpu;
  return gpu;
}

std::vector<CUcontext>& Contexts() {
  thread_local std::vector<CUcontext> contexts;
  return contexts;
}

CUresult Enter(const char* call) {
  Gpu& gpu = TheGpu();
  if (gpu.calls_until_failure == 0) return CUDA_SUCCESS;
  if (gpu.calls_until_failure > 1) {
    --gpu.calls_until_failure;
    return CUDA_SUCCESS;
  }
  if (!gpu.fails_on) gpu.calls_until_failure = 0;
  gpu.failed = call;
  return gpu.failure;
}

}  // namespace fake_cuda

using fake_cuda::Contexts;
using fake_cuda::Enter;
using fake_cuda::Gpu;
using fake_cuda::kTotalBytes;
using fake_cuda::TheGpu;

namespace {

CUcontext PrimaryContext() { return reinterpret_cast<CUcontext>(0x1); }

void* At(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

void FailFrom(uint64_t k, CUresult result, bool on) {
  FAKE_LOCK();
  TheGpu().calls_until_failure = k;
  TheGpu().fails_on = on;
  TheGpu().failure = result;
  TheGpu().failed = nullptr;
}

}  // namespace

extern "C" {

void FakeCudaFail(uint64_t k, CUresult result) { FailFrom(k, result, false); }

void FakeCudaFailFrom(uint64_t k, CUresult result) {
  FailFrom(k, result, true);
}

const char* FakeCudaFailed() {
  FAKE_LOCK();
  return TheGpu().failed;
}

uint64_t FakeCudaLive() {
  FAKE_LOCK();
  const Gpu& gpu = TheGpu();
  return gpu.handles.size() + gpu.reservations.size() + gpu.mappings.size() +
         gpu.allocations.size() + gpu.opened.size() + gpu.retained +
         gpu.pushed_contexts + gpu.streams.size() + gpu.events.size() +
         gpu.page_locked.size();
}

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  FAKE_ENTER();
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "FAKE_ERROR";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ENTER();
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_ENTER();
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  FAKE_ENTER();
  std::strncpy(name, "Fake GPU", length);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
  FAKE_ENTER();
  std::memset(uuid, 0xFA, sizeof(*uuid));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  FAKE_ENTER();
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  FAKE_ENTER();
  *bytes = kTotalBytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  FAKE_ENTER();
  *can = 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  FAKE_ENTER();
  ++TheGpu().retained;
  *context = PrimaryContext();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  FAKE_LOCK();
  --TheGpu().retained;
  return Enter(__func__);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  FAKE_ENTER();
  *flags = 0;
  *active = TheGpu().retained > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  FAKE_ENTER();
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

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *free_bytes = TheGpu().memory->FreeBytes().value();
  *total_bytes = kTotalBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  std::memcpy(to, At(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  std::memcpy(At(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  std::memset(At(to), value, bytes);
  return CUDA_SUCCESS;
}

}  // extern "C"
