#include <cuda.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/driver_lookup.h"

// The cost of a launch of an empty kernel to a program that knows nothing of
// gmb: nanoseconds a launch, the median of batches that the GPU does not hold
// up.
//   gpu_launch_cost THREADS BATCHES [--mapped|--ask]
// It finds the driver as the CUDA runtime does, so that `gmb run` serves it.
// --mapped: its memory is mapped, as gmb's is, so that natively it tells what
// that alone costs. --ask: not of a launch, but of the question for the device
// address of an argument, which Triton's launchers ask about each.

namespace {

constexpr int kLaunches = 400;  // a batch; fewer than the driver queues

constexpr char kEmptyKernel[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry empty() { ret; }
)";

template <typename Function>
Function Find(const char* name, int version) {
  return reinterpret_cast<Function>(gmb::test::FindInDriver(name, version));
}

void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_launch_cost: %s: %d\n", what, result);
  std::exit(1);
}

constexpr size_t kBytes = 64 << 20;

CUdeviceptr Allocate() {
  CUdeviceptr memory = 0;
  Must(Find<decltype(&cuMemAlloc)>("cuMemAlloc", 7000)(&memory, kBytes),
       "cuMemAlloc");
  return memory;
}

CUdeviceptr Map() {
  CUmemAllocationProp of{};
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  of.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  CUmemAccessDesc access{};
  access.location = of.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Must(Find<decltype(&cuMemCreate)>("cuMemCreate", 10020)(&handle, kBytes, &of,
                                                          0),
       "cuMemCreate");
  Must(Find<decltype(&cuMemAddressReserve)>("cuMemAddressReserve", 10020)(
           &at, kBytes, 0, 0, 0),
       "cuMemAddressReserve");
  Must(Find<decltype(&cuMemMap)>("cuMemMap", 10020)(at, kBytes, 0, handle, 0),
       "cuMemMap");
  Must(Find<decltype(&cuMemSetAccess)>("cuMemSetAccess", 10020)(at, kBytes,
                                                                &access, 1),
       "cuMemSetAccess");
  return at;
}

std::vector<double> Measure(CUcontext context, CUfunction kernel, int batches) {
  const auto launch = Find<decltype(&cuLaunchKernel)>("cuLaunchKernel", 7000);
  const auto synchronize =
      Find<decltype(&cuStreamSynchronize)>("cuStreamSynchronize", 7000);
  const auto create = Find<decltype(&cuStreamCreate)>("cuStreamCreate", 7000);
  Must(Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent", 7000)(context),
       "cuCtxSetCurrent");
  CUstream stream = nullptr;
  Must(create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::vector<double> costs;
  for (int batch = 0; batch < batches; ++batch) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) {
      Must(launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
           "cuLaunchKernel");
    }
    const std::chrono::duration<double, std::nano> took =
        std::chrono::steady_clock::now() - began;
    costs.push_back(took.count() / kLaunches);
    Must(synchronize(stream), "cuStreamSynchronize");
  }
  return costs;
}

std::vector<double> MeasureAsking(CUcontext context, CUdeviceptr memory,
                                  int batches) {
  const auto ask =
      Find<decltype(&cuPointerGetAttribute)>("cuPointerGetAttribute", 7000);
  Must(Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent", 7000)(context),
       "cuCtxSetCurrent");
  std::vector<double> costs;
  for (int batch = 0; batch < batches; ++batch) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) {
      CUdeviceptr answer = 0;
      Must(ask(&answer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 256 * i),
           "cuPointerGetAttribute");
      if (answer != memory + 256 * i)
        Must(CUDA_ERROR_UNKNOWN, "another address");
    }
    const std::chrono::duration<double, std::nano> took =
        std::chrono::steady_clock::now() - began;
    costs.push_back(took.count() / kLaunches);
  }
  return costs;
}

}  // namespace

int main(int argc, char** argv) {
  const bool mapped = argc == 4 && std::strcmp(argv[3], "--mapped") == 0;
  const bool asks = argc == 4 && std::strcmp(argv[3], "--ask") == 0;
  if (argc != 3 && !mapped && !asks) {
    std::fprintf(stderr,
                 "usage: gpu_launch_cost THREADS BATCHES [--mapped|--ask]\n");
    return 2;
  }
  const auto threads = static_cast<size_t>(std::atoi(argv[1]));
  const int batches = std::atoi(argv[2]);
  Must(Find<decltype(&cuInit)>("cuInit", 7000)(0), "cuInit");
  CUcontext context = nullptr;
  Must(Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain",
                                                 7000)(&context, 0),
       "cuDevicePrimaryCtxRetain");
  Must(Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent", 7000)(context),
       "cuCtxSetCurrent");
  // So that under gmb there is a session, and with it a gate.
  const CUdeviceptr memory = mapped ? Map() : Allocate();
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  Must(Find<decltype(&cuModuleLoadData)>("cuModuleLoadData", 7000)(
           &module, kEmptyKernel),
       "cuModuleLoadData");
  Must(Find<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", 7000)(
           &kernel, module, "empty"),
       "cuModuleGetFunction");
  std::vector<std::vector<double>> all(threads);
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      all[i] = asks ? MeasureAsking(context, memory, batches)
                    : Measure(context, kernel, batches);
    });
  }
  std::vector<double> costs;
  for (size_t i = 0; i < threads; ++i) {
    running[i].join();
    costs.insert(costs.end(), all[i].begin(), all[i].end());
  }
  std::sort(costs.begin(), costs.end());
  std::printf("%.1f ns a %s, lower quarter %.1f\n", costs[costs.size() / 2],
              asks ? "question" : "launch", costs[costs.size() / 4]);
  return 0;
}
