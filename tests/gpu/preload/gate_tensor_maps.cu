// Tensor maps that were made before the memory left: tiles are loaded through
// one that is a kernel's argument and one that lies in memory which leaves, too,
// and stored through a third. The program idles between requests.
//   gate_tensor_maps DIR
// Ends with 77 on a GPU that has no such copies.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "gate_requests.cuh"

namespace {

using Sum = unsigned long long;

constexpr int kWidth = 16384, kHeight = 8192;  // words
constexpr int kTileWidth = 64, kTileHeight = 32;
constexpr int kTiles = (kWidth / kTileWidth) * (kHeight / kTileHeight);
constexpr unsigned kTileBytes = kTileWidth * kTileHeight * 4;

__host__ __device__ uint32_t Word(size_t at, uint32_t salt) {
  return static_cast<uint32_t>(at * 2654435761u + salt);
}
__host__ __device__ Sum Mixed(uint32_t word, size_t at) {
  return word * (2 * static_cast<Sum>(at) + 1);
}

__global__ void FillWords(uint32_t* words, uint32_t salt) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x;
       i < size_t{1} * kWidth * kHeight; i += size_t{gridDim.x} * blockDim.x)
    words[i] = Word(i, salt);
}
__global__ void Summed(const uint32_t* words, Sum* sum) {
  Sum own = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x;
       i < size_t{1} * kWidth * kHeight; i += size_t{gridDim.x} * blockDim.x)
    own += Mixed(words[i], i);
  atomicAdd(sum, own);
}

__device__ uint32_t Shared(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
__device__ void Load(void* to, const void* map, int x, int y, uint64_t* bar,
                     unsigned parity) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
          Shared(bar)),
      "r"(kTileBytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(Shared(to)),
      "l"(map), "r"(x), "r"(y), "r"(Shared(bar))
      : "memory");
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(bar)), "r"(parity)
        : "memory");
  }
}

// A word of the third tensor is the sum of those of the first two.
__global__ void Add(const __grid_constant__ CUtensorMap first,
                    const CUtensorMap* second,
                    const __grid_constant__ CUtensorMap third) {
  __shared__ alignas(128) uint32_t a[kTileWidth * kTileHeight];
  __shared__ alignas(128) uint32_t b[kTileWidth * kTileHeight];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&bar))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile(
        "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(second)
        : "memory");
  }
  __syncthreads();
  unsigned parity = 0;
  for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
    const int x = tile % (kWidth / kTileWidth) * kTileWidth;
    const int y = tile / (kWidth / kTileWidth) * kTileHeight;
    if (threadIdx.x == 0) {
      Load(a, &first, x, y, &bar, parity);
      Load(b, second, x, y, &bar, parity ^ 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kTileWidth * kTileHeight; i += blockDim.x)
      a[i] += b[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile(
          "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
          "[%0, {%1, %2}], [%3];" ::"l"(&third),
          "r"(x), "r"(y), "r"(Shared(a))
          : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
  }
}

CUtensorMap Encoded(uint32_t* memory) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                        cudaEnableDefault, &status));
  if (status != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "this driver has no tensor maps\n");
    std::exit(77);
  }
  CUtensorMap map;
  const cuuint64_t sizes[] = {kWidth, kHeight};
  const cuuint64_t strides[] = {kWidth * 4};
  const cuuint32_t box[] = {kTileWidth, kTileHeight};
  const cuuint32_t steps[] = {1, 1};
  const CUresult result =
      reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found)(
          &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, memory, sizes, strides, box,
          steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", result);
    std::exit(1);
  }
  return map;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gate_tensor_maps DIR\n");
    return 2;
  }
  cudaDeviceProp device{};
  MUST(cudaGetDeviceProperties(&device, 0));
  if (device.major < 9) {
    std::fprintf(stderr, "this GPU has no tensor maps\n");
    return 77;
  }
  constexpr size_t kBytes = size_t{4} * kWidth * kHeight;
  uint32_t* tensors[3];
  for (auto& tensor : tensors) MUST(cudaMalloc(&tensor, kBytes));
  FillWords<<<512, 256>>>(tensors[0], 11);
  FillWords<<<512, 256>>>(tensors[1], 222);
  const CUtensorMap first = Encoded(tensors[0]);
  const CUtensorMap second = Encoded(tensors[1]);
  const CUtensorMap third = Encoded(tensors[2]);
  CUtensorMap* kept = nullptr;
  MUST(cudaMalloc(&kept, sizeof(CUtensorMap)));
  MUST(cudaMemcpy(kept, &second, sizeof(second), cudaMemcpyHostToDevice));
  Sum* sum = nullptr;
  MUST(cudaMalloc(&sum, sizeof(Sum)));
  Sum right = 0;
  for (size_t i = 0; i < size_t{1} * kWidth * kHeight; ++i)
    right += Mixed(Word(i, 11) + Word(i, 222), i);
  const auto answer = [&] {
    MUST(cudaMemset(tensors[2], 0, kBytes));
    MUST(cudaMemset(sum, 0, sizeof(Sum)));
    Add<<<264, 128>>>(first, kept, third);
    MUST(cudaGetLastError());
    Summed<<<1024, 256>>>(tensors[2], sum);
    Sum now = 0;
    MUST(cudaMemcpy(&now, sum, sizeof(now), cudaMemcpyDeviceToHost));
    return now;
  };
  return Serve(argv[1], answer, right, "three tensor maps over 1.5 GiB");
}
