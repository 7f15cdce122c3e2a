#include "gpu_kernels.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

namespace model_servers {
namespace {

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 4096;

unsigned BlocksFor(uint64_t words) {
  const uint64_t blocks = (words + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ uint64_t First() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ uint64_t Stride() { return uint64_t{gridDim.x} * blockDim.x; }

__global__ void FillWeightsKernel(uint64_t* to, uint64_t words, uint64_t seed) {
  for (uint64_t i = First(); i < words; i += Stride()) to[i] = WeightAt(seed, i);
}

__global__ void MakeInputKernel(uint64_t* to, uint64_t words, uint64_t rows) {
  for (uint64_t i = First(); i < words * rows; i += Stride()) {
    to[i] = InputAt(i / words, i % words);
  }
}

__global__ void LayerKernel(LayerCall call) {
  for (uint64_t i = First(); i < call.out_words * call.rows; i += Stride()) {
    call.out[i] = OutputAt(call, i / call.out_words, i % call.out_words);
  }
}

__global__ void SumKernel(const uint64_t* from, uint64_t words, uint64_t* cell) {
  unsigned long long sum = 0;
  for (uint64_t i = First(); i < words; i += Stride()) sum += from[i];
  atomicAdd(reinterpret_cast<unsigned long long*>(cell), sum);
}

const char* Text(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

cudaStream_t StreamOf(const GpuStream& gpu) { return static_cast<cudaStream_t>(gpu.stream); }

// "GPU-8f5c...", as NVIDIA prints it.
void PrintUuid(const cudaUUID_t& uuid, char (&text)[41]) {
  const auto* byte = reinterpret_cast<const unsigned char*>(uuid.bytes);
  char* at = text + std::snprintf(text, sizeof(text), "GPU");
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    at += std::snprintf(at, static_cast<size_t>(text + sizeof(text) - at), "%s%02x",
                        dash ? "-" : "", byte[i]);
  }
}

}  // namespace

const char* GpuOpen(const char* uuid, GpuStream* opened) {
  int count = 0;
  if (const char* error = Text(cudaGetDeviceCount(&count))) return error;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    if (const char* error = Text(cudaGetDeviceProperties(&properties, device))) return error;
    char text[41];
    PrintUuid(properties.uuid, text);
    if (std::strcmp(text, uuid) != 0) continue;
    cudaStream_t stream = nullptr;
    if (const char* error = Text(cudaSetDevice(device))) return error;
    if (const char* error = Text(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) {
      return error;
    }
    *opened = {device, stream};
    return nullptr;
  }
  return "this process does not see the broker's GPU";
}

void GpuClose(const GpuStream& gpu) {
  if (gpu.stream != nullptr) cudaStreamDestroy(StreamOf(gpu));
}

const char* GpuFillWeights(const GpuStream& gpu, uint64_t* to, uint64_t words, uint64_t seed) {
  if (const char* error = Text(cudaSetDevice(gpu.device))) return error;
  FillWeightsKernel<<<BlocksFor(words), kThreads, 0, StreamOf(gpu)>>>(to, words, seed);
  return Text(cudaGetLastError());
}

const char* GpuMakeInput(const GpuStream& gpu, uint64_t* to, uint64_t words, uint64_t rows) {
  if (const char* error = Text(cudaSetDevice(gpu.device))) return error;
  MakeInputKernel<<<BlocksFor(words * rows), kThreads, 0, StreamOf(gpu)>>>(to, words, rows);
  return Text(cudaGetLastError());
}

const char* GpuRunLayer(const GpuStream& gpu, const LayerCall& call) {
  if (const char* error = Text(cudaSetDevice(gpu.device))) return error;
  LayerKernel<<<BlocksFor(call.out_words * call.rows), kThreads, 0, StreamOf(gpu)>>>(call);
  return Text(cudaGetLastError());
}

const char* GpuSum(const GpuStream& gpu, const uint64_t* from, uint64_t words, uint64_t* cell,
                   uint64_t* sum) {
  if (const char* error = Text(cudaSetDevice(gpu.device))) return error;
  const cudaStream_t stream = StreamOf(gpu);
  if (const char* error = Text(cudaMemsetAsync(cell, 0, sizeof(*cell), stream))) return error;
  SumKernel<<<BlocksFor(words), kThreads, 0, stream>>>(from, words, cell);
  if (const char* error = Text(cudaGetLastError())) return error;
  if (const char* error =
          Text(cudaMemcpyAsync(sum, cell, sizeof(*sum), cudaMemcpyDeviceToHost, stream))) {
    return error;
  }
  return Text(cudaStreamSynchronize(stream));
}

}  // namespace model_servers
