#ifndef GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_CUDA_RUNTIME_API_H_
#define GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_CUDA_RUNTIME_API_H_

// As much of the CUDA runtime as gmb/rmm_resource.h uses; the test defines what
// is declared here.

using cudaStream_t = struct CUstream_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorLaunchFailure = 719 };

// NOLINTNEXTLINE(performance-no-int-to-ptr): as the runtime has it
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(0x1))
// NOLINTNEXTLINE(performance-no-int-to-ptr): as the runtime has it
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(0x2))

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream);

#endif  // GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_CUDA_RUNTIME_API_H_
