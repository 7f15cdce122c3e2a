#include "tests/device/fake_cuda/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/device/fake_cuda/state.h"

// The GPUs, and copies.

namespace fake_cuda {

Gpu& TheGpu() {
  static Gpu& gpu = *new Gpu;
  return gpu;
}

uint64_t OthersBytes() {
  const char* const file = std::getenv("FAKE_CUDA_OTHERS");
  uint64_t bytes = 0;
  if (file != nullptr) std::ifstream(file) >> bytes;
  for (const auto& [handle, memory] : TheGpu().handles)
    bytes += memory.foreign ? memory.bytes : 0;
  return bytes;
}

namespace {

// Of devices, and of which context is the current one.
bool NeedsNoContext(const std::string& call) {
  for (const char* const prefix :
       {"cuDevice", "cuDriver", "cuCtxGet", "cuCtxPush", "cuCtxPop"}) {
    if (call.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

}  // namespace

CUresult Enter(const char* call) {
  Gpu& gpu = TheGpu();
  if (!NeedsNoContext(call)) {
    if (gpu.fault != CUDA_SUCCESS) return gpu.fault;
    const CUresult fault =
        Contexts().empty() ? CUDA_SUCCESS : FaultOf(Contexts().back());
    if (fault != CUDA_SUCCESS) return fault;
  }
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

// As CUDA_VISIBLE_DEVICES has it: numbers and UUIDs of the GPUs that there are,
// up to the first that is neither.
std::vector<int> fake_cuda::VisibleDevices() {
  const char* const all = std::getenv("FAKE_CUDA_DEVICES");
  const int count = all == nullptr ? 1 : std::atoi(all);
  std::vector<int> devices;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    for (int i = 0; i < count; ++i) devices.push_back(i);
    return devices;
  }
  std::stringstream text(visible);
  for (std::string word; std::getline(text, word, ',');) {
    int found = -1;
    for (int i = 0; i < count; ++i) {
      if (word == std::to_string(i) || word == UuidText(i)) found = i;
    }
    if (found < 0) break;
    devices.push_back(found);
  }
  return devices;
}

std::string fake_cuda::UuidText(int device) {
  char last[3];
  std::snprintf(last, sizeof(last), "%02x", 0xFA + device);
  return std::string("GPU-fafafafa-fafa-fafa-fafa-fafafafafa") + last;
}

std::string fake_cuda::Peers() {
  const char* const peers = std::getenv("FAKE_CUDA_PEERS");
  return peers == nullptr ? "" : peers;
}

using fake_cuda::At;
using fake_cuda::Contexts;
using fake_cuda::Enter;
using fake_cuda::Gpu;
using fake_cuda::kTotalBytes;
using fake_cuda::TheGpu;

namespace {

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

void FakeCudaRefuseUnmap(uint64_t k, CUresult result) {
  FAKE_LOCK();
  TheGpu().unmaps_until_refusal = k;
  TheGpu().refusal = result;
}

void FakeCudaDuringCopy(void (*what)()) { TheGpu().during_copy = what; }

void FakeCudaDuringPinning(void (*what)()) { TheGpu().during_pinning = what; }

void FakeCudaFault(CUresult result) {
  FAKE_LOCK();
  TheGpu().fault = result;
}

const char* FakeCudaFailed() {
  FAKE_LOCK();
  return TheGpu().failed;
}

uint64_t FakeCudaLive() {
  FAKE_LOCK();
  const Gpu& gpu = TheGpu();
  uint64_t retained = 0;
  for (const auto& [device, times] : gpu.retained) retained += times;
  return gpu.handles.size() + gpu.reservations.size() + gpu.mappings.size() +
         gpu.allocations.size() + gpu.opened.size() + retained +
         gpu.pushed_contexts + gpu.streams.size() + gpu.events.size() +
         gpu.page_locked.size();
}

CUresult cuInit(unsigned) {
  FAKE_LOCK();
  TheGpu().initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  FAKE_ENTER();
  const char* const given = std::getenv("FAKE_CUDA_VERSION");
  *version = given == nullptr ? 13000 : std::atoi(given);
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
  *count = static_cast<int>(fake_cuda::VisibleDevices().size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  FAKE_ENTER();
  std::strncpy(name, "Fake GPU", length);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  FAKE_ENTER();
  if (!TheGpu().initialized) return CUDA_ERROR_NOT_INITIALIZED;
  std::memset(uuid, 0xFA, sizeof(*uuid));
  const std::vector<int> devices = fake_cuda::VisibleDevices();
  if (device < 0 || static_cast<size_t>(device) >= devices.size())
    return CUDA_ERROR_INVALID_DEVICE;
  uuid->bytes[15] = static_cast<char>(0xFA + devices[device]);
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

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  FAKE_ENTER();
  *can = device != peer && !fake_cuda::Peers().empty() ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const uint64_t left = TheGpu().memory->FreeBytes().value();
  *free_bytes = left - std::min(left, fake_cuda::OthersBytes());
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
  if (const auto during = TheGpu().during_copy.exchange(nullptr)) during();
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  std::memcpy(At(to), from, bytes);
  return CUDA_SUCCESS;
}

// A kernel, as it were.
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!fake_cuda::Reaches(to)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memset(At(to), value, bytes);
  return CUDA_SUCCESS;
}

}  // extern "C"
