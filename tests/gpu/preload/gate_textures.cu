// Texture objects that were made before the memory left, over linear memory,
// over rows with a pitch, and over an array (which is the driver's own and
// stays); the program idles between requests.
//   gate_textures DIR
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gate_requests.cuh"

namespace {

using Sum = unsigned long long;

constexpr size_t kTexels = size_t{1} << 25;  // of 16 bytes
constexpr int kWidth = 16384, kHeight = 8192;  // of 4 bytes
constexpr int kSide = 1024;

__host__ __device__ uint32_t Word(size_t at) {
  return static_cast<uint32_t>(at * 2654435761u + 12345u);
}
// So that a word in another's place is not right.
__host__ __device__ Sum Mixed(uint32_t word, size_t at) {
  return word * (2 * static_cast<Sum>(at) + 1);
}

__global__ void FillWords(uint32_t* words, size_t count, size_t first) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    words[i] = Word(first + i);
}
__global__ void ReadLinear(cudaTextureObject_t texture, Sum* sum) {
  Sum own = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kTexels;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint4 texel = tex1Dfetch<uint4>(texture, static_cast<int>(i));
    own += Mixed(texel.x, 4 * i) + Mixed(texel.y, 4 * i + 1) +
           Mixed(texel.z, 4 * i + 2) + Mixed(texel.w, 4 * i + 3);
  }
  atomicAdd(sum, own);
}
__global__ void ReadRows(cudaTextureObject_t texture, int width, int height,
                         Sum* sum) {
  const size_t count = size_t{1} * width * height;
  Sum own = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const auto x = static_cast<float>(i % width);
    const auto y = static_cast<float>(i / width);
    own += Mixed(tex2D<uint32_t>(texture, x + 0.5f, y + 0.5f), i);
  }
  atomicAdd(sum, own);
}

cudaTextureObject_t Texture(const cudaResourceDesc& of) {
  cudaTextureDesc how{};
  how.readMode = cudaReadModeElementType;
  how.filterMode = cudaFilterModePoint;
  cudaTextureObject_t texture = 0;
  MUST(cudaCreateTextureObject(&texture, &of, &how, nullptr));
  return texture;
}

Sum Expected(size_t words) {
  Sum sum = 0;
  for (size_t i = 0; i < words; ++i) sum += Mixed(Word(i), i);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gate_textures DIR\n");
    return 2;
  }
  uint32_t* linear = nullptr;
  MUST(cudaMalloc(&linear, kTexels * 16));
  FillWords<<<512, 256>>>(linear, kTexels * 4, 0);
  cudaResourceDesc of{};
  of.resType = cudaResourceTypeLinear;
  of.res.linear.devPtr = linear;
  of.res.linear.desc = cudaCreateChannelDesc<uint4>();
  of.res.linear.sizeInBytes = kTexels * 16;
  const cudaTextureObject_t by_texel = Texture(of);

  uint32_t* rows = nullptr;
  size_t pitch = 0;
  MUST(cudaMallocPitch(&rows, &pitch, kWidth * 4, kHeight));
  for (int y = 0; y < kHeight; ++y)
    FillWords<<<16, 256>>>(rows + y * pitch / 4, kWidth, size_t{1} * y * kWidth);
  of = {};
  of.resType = cudaResourceTypePitch2D;
  of.res.pitch2D.devPtr = rows;
  of.res.pitch2D.desc = cudaCreateChannelDesc<uint32_t>();
  of.res.pitch2D.width = kWidth;
  of.res.pitch2D.height = kHeight;
  of.res.pitch2D.pitchInBytes = pitch;
  const cudaTextureObject_t by_row = Texture(of);

  std::vector<uint32_t> host(kSide * kSide);
  for (size_t i = 0; i < host.size(); ++i) host[i] = Word(i);
  const cudaChannelFormatDesc word = cudaCreateChannelDesc<uint32_t>();
  cudaArray_t array = nullptr;
  MUST(cudaMallocArray(&array, &word, kSide, kSide));
  MUST(cudaMemcpy2DToArray(array, 0, 0, host.data(), kSide * 4, kSide * 4,
                           kSide, cudaMemcpyHostToDevice));
  of = {};
  of.resType = cudaResourceTypeArray;
  of.res.array.array = array;
  const cudaTextureObject_t by_array = Texture(of);

  Sum* sums = nullptr;
  MUST(cudaMalloc(&sums, 3 * sizeof(Sum)));
  MUST(cudaDeviceSynchronize());
  const Sum rights[] = {Expected(kTexels * 4),
                        Expected(size_t{1} * kWidth * kHeight),
                        Expected(host.size())};
  const auto answer = [&] {
    MUST(cudaMemset(sums, 0, 3 * sizeof(Sum)));
    ReadLinear<<<1024, 256>>>(by_texel, &sums[0]);
    ReadRows<<<1024, 256>>>(by_row, kWidth, kHeight, &sums[1]);
    ReadRows<<<1024, 256>>>(by_array, kSide, kSide, &sums[2]);
    Sum now[3];
    MUST(cudaMemcpy(now, sums, sizeof(now), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 3; ++i) {
      if (now[i] == rights[i]) continue;
      std::fprintf(stderr, "texture %d: %llx is not %llx\n", i, now[i],
                   rights[i]);
      ++wrong;
    }
    return wrong;
  };
  return Serve(argv[1], answer, 0, "three texture objects over 1 GiB");
}
