// Streams of another device or context than the current one, and
// cudaDeviceReset: what holds natively holds under `gmb run`.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "checks.cuh"

static int failed = 0;

__global__ void Spin(long long cycles) {
  for (const long long end = clock64() + cycles; clock64() < end;) {
  }
}

static const int n = 4 << 20;  // 16 MiB

static bool Holds(const int* x, int value) {
  std::vector<int> host(n);
  bool right = cudaMemcpy(host.data(), x, n * sizeof(int),
                          cudaMemcpyDeviceToHost) == cudaSuccess;
  for (int i = 0; i < n && right; ++i) right = host[i] == value + i;
  return right;
}

static int DeviceOf(const void* x) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, x) == cudaSuccess
             ? attributes.device
             : -1;
}

static int* Allocate(cudaStream_t stream) {
  int* x = nullptr;
  return cudaMallocAsync(&x, n * sizeof(int), stream) == cudaSuccess ? x
                                                                     : nullptr;
}

// Allocates and frees in order of a stream while another device is current.
static void OtherDevice(int device) {
  cudaSetDevice(device);
  cudaStream_t stream, second;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaSetDevice(0);
  int* const x = Allocate(stream);
  CHECK("cudaMallocAsync for another device's stream is of that device",
        x != nullptr && DeviceOf(x) == device);
  cudaSetDevice(device);
  Spin<<<1, 1, 0, stream>>>(200000000);
  Fill<<<256, 256, 0, stream>>>(x, n, 5);
  cudaSetDevice(0);
  CHECK("cudaFreeAsync while another device is current",
        cudaFreeAsync(x, stream) == cudaSuccess);
  cudaSetDevice(device);
  int* const y = Allocate(second);
  Fill<<<256, 256, 0, second>>>(y, n, 6);
  cudaStreamSynchronize(stream);
  cudaStreamSynchronize(second);
  CHECK("nobody has it before its stream is done", y != nullptr && Holds(y, 6));
  CHECK("and the other goes too", cudaFreeAsync(y, second) == cudaSuccess);
  cudaSetDevice(0);
  bool ordered = true;
  for (int i = 0; i < 20; ++i) {
    int* const z = Allocate(stream);
    ordered = ordered && z != nullptr && DeviceOf(z) == device &&
              cudaFreeAsync(z, stream) == cudaSuccess;
  }
  CHECK("20 times from the device that is current", ordered);
  cudaSetDevice(device);
  cudaDeviceSynchronize();
  cudaStreamDestroy(stream);
  cudaStreamDestroy(second);
  CHECK("no error is left there", cudaGetLastError() == cudaSuccess);
  cudaSetDevice(0);
}

// The same with a context of its own on the same device.
static void OtherContext() {
  CUcontext primary = nullptr, own = nullptr, now_current = nullptr;
  cudaFree(nullptr);
  cuCtxGetCurrent(&primary);
#if CUDA_VERSION >= 13000
  CUctxCreateParams parameters{};
  const CUresult made = cuCtxCreate(&own, &parameters, 0, 0);
#else
  const CUresult made = cuCtxCreate(&own, 0, 0);
#endif
  if (made != CUDA_SUCCESS) {
    std::printf("SKIP  a second context: %d\n", made);
    return;
  }
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr x = 0;
  CHECK("a second context allocates",
        cuMemAllocAsync(&x, n * sizeof(int), stream) == CUDA_SUCCESS);
  cuCtxSetCurrent(primary);
  CHECK("what it has is freed while the first is current",
        cuMemFreeAsync(x, stream) == CUDA_SUCCESS);
  CHECK("and allocated", cuMemAllocAsync(&x, n * sizeof(int), stream) ==
                             CUDA_SUCCESS);
  CHECK("and freed", cuMemFreeAsync(x, stream) == CUDA_SUCCESS);
  CHECK("what is current is as before",
        cuCtxGetCurrent(&now_current) == CUDA_SUCCESS &&
            now_current == primary);
  CHECK("the second context is destroyed", cuCtxDestroy(own) == CUDA_SUCCESS);
  cuCtxSetCurrent(primary);
  int* const y = Allocate(cudaStreamPerThread);
  CHECK("the first allocates as ever", y != nullptr);
  Fill<<<256, 256, 0, cudaStreamPerThread>>>(y, n, 7);
  CHECK("and its bytes are right",
        cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess &&
            Holds(y, 7));
  cudaFreeAsync(y, cudaStreamPerThread);
}

static void Reset() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int* x = Allocate(stream);
  for (int i = 0; i < 100; ++i) Fill<<<256, 256, 0, stream>>>(x, n, i);
  CHECK("cudaFreeAsync behind work", cudaFreeAsync(x, stream) == cudaSuccess);
  CHECK("cudaDeviceReset", cudaDeviceReset() == cudaSuccess);
  cudaStreamCreate(&stream);
  for (int i = 0; i < 3; ++i) {
    x = Allocate(stream);
    CHECK("cudaMallocAsync after it", x != nullptr);
    Fill<<<256, 256, 0, stream>>>(x, n, i);
    CHECK("and its bytes are right",
          cudaStreamSynchronize(stream) == cudaSuccess && Holds(x, i));
    CHECK("and cudaFreeAsync", cudaFreeAsync(x, stream) == cudaSuccess);
  }
  CHECK("cudaMalloc after it", cudaMalloc(&x, n * sizeof(int)) == cudaSuccess);
  CHECK("and cudaFree", cudaFree(x) == cudaSuccess);
  CHECK("no error is left", cudaDeviceSynchronize() == cudaSuccess &&
                                cudaGetLastError() == cudaSuccess);
}

// devices STEP..., of device, context and reset.
int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int count = 0;
  cudaGetDeviceCount(&count);
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    if (step == "context") {
      OtherContext();
    } else if (step == "reset") {
      for (int round = 0; round < 3; ++round) Reset();
    } else if (count > 1) {
      OtherDevice(count - 1);
    } else {
      std::printf("SKIP  another device: there is one\n");
    }
  }
  return failed;
}
