// The CUDA runtime linked statically, nvcc's default: only the driver's
// functions can be served.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "checks.cuh"

static bool Holds(const int* x, int n, int value) {
  int* host = static_cast<int*>(std::malloc(n * sizeof(int)));
  bool right = cudaMemcpy(host, x, n * sizeof(int), cudaMemcpyDeviceToHost) ==
               cudaSuccess;
  for (int i = 0; i < n && right; ++i) right = host[i] == value + i;
  std::free(host);
  return right;
}

int main(int argc, char** argv) {
  int failed = 0;
  const size_t limit = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const int n = 16 << 20;
  size_t free_bytes = 0, total_bytes = 0;
  CHECK("cudaMemGetInfo says the budget",
        cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
            total_bytes == limit);
  int* x = nullptr;
  CHECK("cudaMalloc", cudaMalloc(&x, n * sizeof(int)) == cudaSuccess);
  Fill<<<256, 256>>>(x, n, 3);
  CHECK("a kernel and a copy", Holds(x, n, 3));
  size_t after = 0;
  CHECK("the budget follows", cudaMemGetInfo(&after, &total_bytes) ==
                                      cudaSuccess &&
                                  after + n * sizeof(int) <= free_bytes);
  cudaPointerAttributes attributes{};
  CHECK("cudaPointerGetAttributes",
        cudaPointerGetAttributes(&attributes, x) == cudaSuccess &&
            attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK("cudaFree", cudaFree(x) == cudaSuccess);
  CHECK("cudaFree again is refused", cudaFree(x) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  bool ordered = true;
  for (int i = 0; i < 50; ++i) {
    int* y = nullptr;
    ordered = ordered && cudaMallocAsync(&y, n * sizeof(int), stream) ==
                             cudaSuccess;
    Fill<<<256, 256, 0, stream>>>(y, n, i);
    if (i % 10 == 0) {
      cudaStreamSynchronize(stream);
      ordered = ordered && Holds(y, n, i);
    }
    ordered = ordered && cudaFreeAsync(y, stream) == cudaSuccess;
  }
  CHECK("50 times cudaMallocAsync and cudaFreeAsync", ordered);
  size_t pitch = 0;
  void* rows = nullptr;
  CHECK("cudaMallocPitch",
        cudaMallocPitch(&rows, &pitch, 1000, 1000) == cudaSuccess &&
            pitch >= 1000 &&
            cudaMemset2D(rows, pitch, 7, 1000, 1000) == cudaSuccess);
  CHECK("its cudaFree", cudaFree(rows) == cudaSuccess);
  int* managed = nullptr;
  CHECK("managed memory is the driver's",
        cudaMallocManaged(&managed, 1 << 20) == cudaSuccess);
  Fill<<<16, 256>>>(managed, 1000, 9);
  CHECK("and can be used", cudaDeviceSynchronize() == cudaSuccess &&
                               managed[999] == 9 + 999);
  CHECK("and freed", cudaFree(managed) == cudaSuccess);
  CHECK("more than the limit is cudaErrorMemoryAllocation",
        cudaMalloc(&x, limit + (1 << 20)) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  CHECK("no error is left", cudaDeviceSynchronize() == cudaSuccess);
  return failed;
}
