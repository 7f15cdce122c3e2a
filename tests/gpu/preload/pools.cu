// The figures that a memory pool tells of itself, natively and under `gmb run`:
// used bytes, reserved bytes, and the most of each. As CuPy's tests of
// MemoryAsyncPool.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

int failed = 0;

void Check(const char* what, bool holds) {
  std::printf("%s  %s\n", holds ? "PASS" : "FAIL", what);
  if (!holds) ++failed;
}

// Without one of these there is nothing to check.
void Need(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::printf("FAIL  %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

uint64_t Get(cudaMemPool_t pool, cudaMemPoolAttr what) {
  uint64_t value = 0;
  Need(cudaMemPoolGetAttribute(pool, what, &value), "an attribute is told");
  return value;
}
uint64_t Used(cudaMemPool_t pool) {
  return Get(pool, cudaMemPoolAttrUsedMemCurrent);
}
uint64_t Reserved(cudaMemPool_t pool) {
  return Get(pool, cudaMemPoolAttrReservedMemCurrent);
}

uint64_t FreeAndReserved(cudaMemPool_t pool) {
  size_t free = 0;
  size_t total = 0;
  Need(cudaMemGetInfo(&free, &total), "what is free is told");
  return free + Reserved(pool);
}

void* Allocate(uint64_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  Need(cudaMallocAsync(&memory, bytes, stream), "memory is served");
  return memory;
}
void Free(void* memory, cudaStream_t stream) {
  Need(cudaFreeAsync(memory, stream), "memory is freed");
}
void Trim(cudaMemPool_t pool) {
  Need(cudaDeviceSynchronize(), "work ends");
  Need(cudaMemPoolTrimTo(pool, 0), "the pool is trimmed");
}

void SmallOnes(cudaMemPool_t pool, cudaStream_t other) {
  void* const first = Allocate(1024, nullptr);
  Check("used: as much as is asked for", Used(pool) == 1024);
  const uint64_t reserved = Reserved(pool);
  Check("reserved: at least that", reserved >= 1024);
  void* const second = Allocate(2048, nullptr);
  Check("used: the sum", Used(pool) == 3072);
  Free(second, nullptr);
  Check("used: less by what is freed", Used(pool) == 1024);
  Free(first, nullptr);
  Check("used: nothing", Used(pool) == 0);
  Check("reserved: the same all the time", Reserved(pool) == reserved);
  void* const third = Allocate(512, other);
  Check("used on another stream", Used(pool) == 512);
  Free(third, other);
  Trim(pool);
  Check("reserved: nothing after a trim", Reserved(pool) == 0);
  Check("the most that was used", Get(pool, cudaMemPoolAttrUsedMemHigh) == 3072);
  Check("the most that was reserved",
        Get(pool, cudaMemPoolAttrReservedMemHigh) >= reserved);
}

void LargeOnes(cudaMemPool_t pool) {
  constexpr uint64_t kBytes = uint64_t{100} << 20;
  void* const memory = Allocate(kBytes, nullptr);
  Check("used: 100 MiB", Used(pool) == kBytes);
  Check("reserved: at least that", Reserved(pool) >= kBytes);
  Free(memory, nullptr);
  Check("reserved: kept", Reserved(pool) >= kBytes);
  const uint64_t before = FreeAndReserved(pool);
  Need(cudaStreamSynchronize(nullptr), "work ends");
  Check("reserved: nothing once the program has waited", Reserved(pool) == 0);
  Check("free and reserved: no byte twice", FreeAndReserved(pool) == before);
  uint64_t none = 0;
  Need(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none),
       "the mark is reset");
  Check("the mark begins anew", Get(pool, cudaMemPoolAttrUsedMemHigh) == 0);
  Trim(pool);
}

void OnesOfItsOwn(cudaMemPool_t standard) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t own = nullptr;
  Need(cudaMemPoolCreate(&own, &properties), "a pool is made");
  void* memory = nullptr;
  Need(cudaMallocFromPoolAsync(&memory, 4096, own, nullptr), "memory of it");
  Check("used of a pool of its own", Used(own) == 4096);
  Check("and not of the standard one", Used(standard) == 0);
  Free(memory, nullptr);
  uint64_t keep = uint64_t{64} << 20;
  Need(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &keep),
       "the threshold is set");
  Check("the threshold is told",
        Get(own, cudaMemPoolAttrReleaseThreshold) == keep);
  Need(cudaMemPoolDestroy(own), "the pool is destroyed");
}

}  // namespace

int main() {
  cudaMemPool_t pool = nullptr;
  Need(cudaDeviceGetDefaultMemPool(&pool, 0), "there is a pool");
  cudaStream_t other = nullptr;
  Need(cudaStreamCreate(&other), "a stream");
  SmallOnes(pool, other);
  LargeOnes(pool);
  OnesOfItsOwn(pool);
  return failed == 0 ? 0 : 1;
}
