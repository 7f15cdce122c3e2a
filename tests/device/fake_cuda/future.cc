#include "tests/device/fake_cuda/future.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tests/device/fake_cuda/state.h"

// The fake driver's functions that gmb does not know.

using fake_cuda::At;
using fake_cuda::Enter;
using fake_cuda::TheGpu;

namespace {

template <int kNumber>
CUresult Numbered() {
  return static_cast<CUresult>(kNumber);
}

template <int... kNumbers>
void* FindNumbered(int number, std::integer_sequence<int, kNumbers...>) {
  static constexpr std::array kAll = {&Numbered<kNumbers>...};
  return number >= 0 && number < static_cast<int>(kAll.size())
             ? reinterpret_cast<void*>(kAll[static_cast<size_t>(number)])
             : nullptr;
}

}  // namespace

void* fake_cuda::FindFuture(const std::string& name, int version) {
  constexpr char kNumber[] = "cuFutureNumber";
  if (name.rfind(kNumber, 0) == 0) {
    return FindNumbered(std::stoi(name.substr(std::strlen(kNumber))),
                        std::make_integer_sequence<int, kFutureNumbers>());
  }
  if (name == "cuMemsetD8" && version >= 14000)
    return reinterpret_cast<void*>(&cuMemsetD8_v9);
  if (name == "cuMemAlloc" && version >= 14000)
    return reinterpret_cast<void*>(&cuMemAlloc_v9);
  if (name == "cuMulticastBindMem" && version >= 14000)
    return reinterpret_cast<void*>(&cuMulticastBindMem_v9);
  if (name == "cuMemRelease" && version >= 14000)
    return reinterpret_cast<void*>(&cuMemRelease_v9);
  return nullptr;
}

extern "C" {

CUresult cuFutureLaunch(CUdeviceptr to, unsigned value, uint64_t bytes,
                        uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3,
                        uint64_t w4, uint64_t w5, uint64_t w6, double d0,
                        double d1, double d2, double d3, double d4, double d5,
                        double d6, double d7) {
  FAKE_ENTER();
  const std::array words = {w0, w1, w2, w3, w4, w5, w6};
  const std::array numbers = {d0, d1, d2, d3, d4, d5, d6, d7};
  if (words != fake_cuda::kFutureWords) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<double>(i) + 0.5)
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::memset(At(to), static_cast<int>(value), bytes);
  return fake_cuda::kFutureDone;
}

CUresult cuMemsetD8_v9(CUdeviceptr to, unsigned char value, size_t bytes,
                       unsigned flags) {
  FAKE_ENTER();
  if (flags != 9) return CUDA_ERROR_INVALID_VALUE;
  std::memset(At(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v9(unsigned flags, CUdeviceptr* address, size_t bytes) {
  return flags == 9 ? cuMemAlloc(address, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindMem_v9(unsigned long long, CUdevice, size_t,
                               CUmemGenericAllocationHandle handle, size_t,
                               size_t, unsigned long long) {
  FAKE_ENTER();
  if (TheGpu().handles.count(handle) == 0) std::abort();
  return CUDA_SUCCESS;
}

CUresult cuMemRelease_v9(CUmemGenericAllocationHandle handle) {
  FAKE_LOCK();
  if (TheGpu().handles.count(handle) == 0) std::abort();
  return cuMemRelease(handle);
}

}  // extern "C"
