#ifndef MODEL_SERVERS_GPU_KERNELS_H_
#define MODEL_SERVERS_GPU_KERNELS_H_

#include <cstdint>

#include "arithmetic.h"

namespace model_servers {

// The GPU's part of gpu_compute.cc, for nvcc: no header but the standard's.
// Each call says null, or what CUDA says. Pointers are the GPU's.
struct GpuStream {
  int device = -1;
  void* stream = nullptr;  // a cudaStream_t
};

[[nodiscard]] const char* GpuOpen(const char* uuid, GpuStream* opened);
void GpuClose(const GpuStream& gpu);
[[nodiscard]] const char* GpuFillWeights(const GpuStream& gpu, uint64_t* to,
                                         uint64_t words, uint64_t seed);
[[nodiscard]] const char* GpuMakeInput(const GpuStream& gpu, uint64_t* to,
                                       uint64_t words, uint64_t rows);
[[nodiscard]] const char* GpuRunLayer(const GpuStream& gpu,
                                      const LayerCall& call);
// Waits for the stream.
[[nodiscard]] const char* GpuSum(const GpuStream& gpu, const uint64_t* from,
                                 uint64_t words, uint64_t* cell, uint64_t* sum);

}  // namespace model_servers

#endif  // MODEL_SERVERS_GPU_KERNELS_H_
