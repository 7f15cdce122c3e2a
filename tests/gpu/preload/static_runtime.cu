// The CUDA runtime linked statically, nvcc's default: only the driver's
// functions can be served.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

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

static bool Holds(const int* x, int n, int value) {
  int* host = static_cast<int*>(std::malloc(n * sizeof(int)));
  bool right = cudaMemcpy(host, x, n * sizeof(int), cudaMemcpyDeviceToHost) ==
               cudaSuccess;
  for (int i = 0; i < n && right; ++i) right = host[i] == value + i;
  std::free(host);
  return right;
}

// A stream of another device than the current one.
static int CheckOtherDevice(size_t bytes) {
  int failed = 0, device = 0;
  if (cudaGetDeviceCount(&device) != cudaSuccess || device < 2) {
    std::printf("SKIP  a stream of another device: there is one\n");
    return 0;
  }
  cudaStream_t other;
  cudaSetDevice(1);
  cudaStreamCreate(&other);
  cudaSetDevice(0);
  void* x = nullptr;
  cudaPointerAttributes attributes{};
  CHECK("cudaMallocAsync on another device's stream",
        cudaMallocAsync(&x, bytes, other) == cudaSuccess);
  CHECK("is of that device",
        cudaPointerGetAttributes(&attributes, x) == cudaSuccess &&
            attributes.device == 1);
  CHECK("its cudaFreeAsync", cudaFreeAsync(x, other) == cudaSuccess);
  CHECK("cudaMalloc here, cudaFreeAsync there",
        cudaMalloc(&x, bytes) == cudaSuccess &&
            cudaFreeAsync(x, other) == cudaSuccess);
  CHECK("the device is the same as before",
        cudaGetDevice(&device) == cudaSuccess && device == 0);
  return failed;
}

// What is freed in the order of a stream whose context ends meanwhile.
static int CheckReset(int n) {
  int failed = 0;
  for (int i = 0; i < 3; ++i) {
    int *x = nullptr, *y = nullptr;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const bool got =
        cudaMallocAsync(&x, n * sizeof(int), stream) == cudaSuccess;
    for (int j = 0; j < 100; ++j) Fill<<<256, 256, 0, stream>>>(x, n, j);
    CHECK("cudaFreeAsync behind its work",
          got && cudaFreeAsync(x, stream) == cudaSuccess);
    CHECK("cudaDeviceReset", cudaDeviceReset() == cudaSuccess);
    CHECK("then cudaMalloc", cudaMalloc(&y, n * sizeof(int)) == cudaSuccess);
    Fill<<<256, 256>>>(y, n, i);
    CHECK("which a kernel fills", Holds(y, n, i));
    CHECK("and its cudaFree", cudaFree(y) == cudaSuccess);
  }
  return failed;
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
  failed += CheckOtherDevice(n * sizeof(int));
  failed += CheckReset(n);
  return failed;
}
