#ifndef GMB_TESTS_DEVICE_FAKE_CUDA_FUTURE_H_
#define GMB_TESTS_DEVICE_FAKE_CUDA_FUTURE_H_

#include <array>
#include <cstdint>

#include "device/cuda/abi/driver_api.h"

// Functions of a driver that is newer than ours: the fake driver for programs has
// them, and no table of gmb.

namespace fake_cuda {

// The words that cuFutureLaunch wants besides the memory; it says which are
// right.
inline constexpr std::array<uint64_t, 7> kFutureWords = {
    0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
    0x4444444444444444, 0x5555555555555555, 0x6666666666666666,
    0x7777777777777777};
inline constexpr auto kFutureDone = static_cast<CUresult>(4242);

// How many functions there are that cuGetProcAddress calls "cuFutureNumberN".
inline constexpr int kFutureNumbers = 300;

}  // namespace fake_cuda

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

// Fills memory; the words are kFutureWords, and the numbers 0.5, 1.5 and so on.
CUresult cuFutureLaunch(CUdeviceptr to, unsigned value, uint64_t bytes,
                        uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3,
                        uint64_t w4, uint64_t w5, uint64_t w6, double d0,
                        double d1, double d2, double d3, double d4, double d5,
                        double d6, double d7);

// The meaning of these from CUDA 14.0 on. The flags are 9.
CUresult cuMemsetD8_v9(CUdeviceptr to, unsigned char value, size_t bytes,
                       unsigned flags);
CUresult cuMemAlloc_v9(unsigned flags, CUdeviceptr* address, size_t bytes);
// As cuMulticastBindMem and cuMemRelease. They end the process where the handle
// is none of the driver's; a driver reads it as an address.
CUresult cuMulticastBindMem_v9(unsigned long long multicast, CUdevice device,
                               size_t offset,
                               CUmemGenericAllocationHandle handle,
                               size_t handle_offset, size_t bytes,
                               unsigned long long flags);
CUresult cuMemRelease_v9(CUmemGenericAllocationHandle handle);

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_TESTS_DEVICE_FAKE_CUDA_FUTURE_H_
