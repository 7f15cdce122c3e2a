// Shared by the CUDA programs here.
#ifndef GMB_TESTS_GPU_PRELOAD_CHECKS_CUH_
#define GMB_TESTS_GPU_PRELOAD_CHECKS_CUH_

#include <cstdio>

// Counts in the caller's `failed`.
#define CHECK(what, condition)                                     \
  do {                                                             \
    const bool ok = (condition);                                   \
    std::printf("%s  %s\n", ok ? "PASS" : "FAIL", what);           \
    failed += ok ? 0 : 1;                                          \
  } while (false)

__global__ void Fill(int* x, int n, int value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    x[i] = value + i;
}

#endif  // GMB_TESTS_GPU_PRELOAD_CHECKS_CUH_
