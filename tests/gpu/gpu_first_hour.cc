#include <cuda.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/driver_lookup.h"

// A program that knows nothing of gmb, for what only a GPU can show of `gmb run`:
//   gpu_first_hour pointers FILE   asks about a pointer, and again once FILE is
//                                  there; says whether the driver's answers were
//                                  the same
//   gpu_first_hour beat BYTES MS S writes one word of BYTES every MS for S
//                                  seconds; says how long the writes took
//   gpu_first_hour green           frees in the order of a green context that
//                                  then ends, and goes on
//   gpu_first_hour hold BYTES FILE fills memory, and holds it until FILE is there
// It finds the driver as the CUDA runtime does, so that `gmb run` serves it.

namespace {

using Clock = std::chrono::steady_clock;

template <typename Function>
Function Find(const char* name, int version = 7000) {
  return reinterpret_cast<Function>(gmb::test::FindInDriver(name, version));
}
#define FIND(name) Find<decltype(&(name))>(#name)
#define FIND_NEW(name) Find<decltype(&(name))>(#name, 12040)

void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_first_hour: %s: %d\n", what, result);
  std::exit(1);
}

CUdeviceptr Allocate(size_t bytes) {
  CUdeviceptr at = 0;
  Must(Find<decltype(&cuMemAlloc)>("cuMemAlloc")(&at, bytes), "cuMemAlloc");
  return at;
}

void AwaitFile(const char* file) {
  struct stat info {};
  while (stat(file, &info) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// The driver's answers about the address, in both ways to ask; a byte that it
// does not write stays 0xEE. Access flags, buffer ids and ranges bring the
// memory back.
std::vector<std::string> Answers(CUdeviceptr at) {
  const auto one = FIND(cuPointerGetAttribute);
  const auto many = FIND(cuPointerGetAttributes);
  std::vector<std::string> all;
  for (const int number : {1, 2, 3, 4, 8, 9, 10, 13, 14, 15, 17}) {
    auto attribute = static_cast<CUpointer_attribute>(number);
    for (const bool alone : {true, false}) {
      std::array<unsigned char, 32> data{};
      data.fill(0xEE);
      void* place = data.data();
      const CUresult result =
          alone ? one(place, attribute, at) : many(1, &attribute, &place, at);
      std::array<char, 96> text{};
      int used = std::snprintf(text.data(), text.size(), "%d %s %d:", number,
                               alone ? "one" : "many", result);
      for (size_t i = 0; i < 16; ++i) {
        used += std::snprintf(text.data() + used, text.size() - used, "%02x",
                              data[i]);
      }
      all.emplace_back(text.data());
    }
  }
  return all;
}

int Pointers(const char* file) {
  const CUdeviceptr at = Allocate(size_t{64} << 20);
  Must(Find<decltype(&cuMemsetD8)>("cuMemsetD8")(at, 7, size_t{64} << 20),
       "cuMemsetD8");
  Must(FIND(cuCtxSynchronize)(), "cuCtxSynchronize");
  const std::vector<std::string> before = Answers(at + 4096);
  std::printf("ready\n");
  std::fflush(stdout);
  AwaitFile(file);
  const auto began = Clock::now();
  const std::vector<std::string> after = Answers(at + 4096);
  const std::chrono::duration<double, std::micro> took = Clock::now() - began;
  size_t equal = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i]) {
      ++equal;
    } else {
      std::printf("differs: %s now %s\n", before[i].c_str(), after[i].c_str());
    }
  }
  std::printf("answers: %zu of %zu equal in %.0f us\n", equal, before.size(),
              took.count());
  std::fflush(stdout);
  AwaitFile((std::string(file) + "-end").c_str());
  unsigned char last = 0;
  Must(Find<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH")(
           &last, at + (size_t{64} << 20) - 1, 1),
       "cuMemcpyDtoH");
  std::printf("contents %s\n", last == 7 ? "right" : "WRONG");
  return equal == before.size() && last == 7 ? 0 : 1;
}

int Beat(size_t bytes, int every_ms, int seconds) {
  const CUdeviceptr at = Allocate(bytes);
  const auto set = Find<decltype(&cuMemsetD32)>("cuMemsetD32");
  const auto synchronize = FIND(cuCtxSynchronize);
  Must(set(at, 1, bytes / 4), "cuMemsetD32");
  Must(synchronize(), "cuCtxSynchronize");
  std::printf("ready\n");
  std::fflush(stdout);
  std::vector<double> took_ms;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  for (auto next = Clock::now(); next < end;
       next += std::chrono::milliseconds(every_ms)) {
    std::this_thread::sleep_until(next);
    const auto began = Clock::now();
    Must(set(at, 2, 1), "cuMemsetD32");
    Must(synchronize(), "cuCtxSynchronize");
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    took_ms.push_back(took.count());
  }
  std::sort(took_ms.begin(), took_ms.end());
  const auto slow = std::count_if(took_ms.begin(), took_ms.end(),
                                  [](double took) { return took >= 5; });
  std::printf("%zu beats, median %.3f ms, largest %.1f ms, %td above 5 ms\n",
              took_ms.size(), took_ms[took_ms.size() / 2], took_ms.back(),
              slow);
  return 0;
}

int Green() {
  const auto allocate =
      Find<decltype(&cuMemAllocAsync)>("cuMemAllocAsync", 11020);
  const auto give_back =
      Find<decltype(&cuMemFreeAsync)>("cuMemFreeAsync", 11020);
  CUdevResource whole{};
  Must(FIND_NEW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM),
       "cuDeviceGetDevResource");
  CUdevResourceDesc description = nullptr;
  Must(FIND_NEW(cuDevResourceGenerateDesc)(&description, &whole, 1),
       "cuDevResourceGenerateDesc");
  for (int turn = 0; turn < 20; ++turn) {
    CUgreenCtx green = nullptr;
    Must(FIND_NEW(cuGreenCtxCreate)(&green, description, 0,
                                    CU_GREEN_CTX_DEFAULT_STREAM),
         "cuGreenCtxCreate");
    CUcontext context = nullptr;
    Must(FIND_NEW(cuCtxFromGreenCtx)(&context, green), "cuCtxFromGreenCtx");
    CUstream stream = nullptr;
    Must(Find<decltype(&cuGreenCtxStreamCreate)>(
             "cuGreenCtxStreamCreate", 12050)(&stream, green,
                                              CU_STREAM_NON_BLOCKING, 0),
         "cuGreenCtxStreamCreate");
    CUdeviceptr at = 0;
    Must(allocate(&at, size_t{64} << 20, stream), "cuMemAllocAsync");
    Must(give_back(at, stream), "cuMemFreeAsync");
    Must(FIND(cuStreamSynchronize)(stream), "cuStreamSynchronize");
    Must(Find<decltype(&cuStreamDestroy)>("cuStreamDestroy")(stream),
         "cuStreamDestroy");
    Must(FIND_NEW(cuGreenCtxDestroy)(green), "cuGreenCtxDestroy");
    // Here the kept part of it is looked at.
    const CUdeviceptr next = Allocate(size_t{64} << 20);
    Must(Find<decltype(&cuMemFree)>("cuMemFree")(next), "cuMemFree");
  }
  std::printf("20 green contexts came and went\n");
  return 0;
}

int Hold(size_t bytes, const char* file) {
  const CUdeviceptr at = Allocate(bytes);
  Must(Find<decltype(&cuMemsetD8)>("cuMemsetD8")(at, 7, bytes), "cuMemsetD8");
  Must(FIND(cuCtxSynchronize)(), "cuCtxSynchronize");
  std::printf("ready\n");
  std::fflush(stdout);
  AwaitFile(file);
  return 0;
}

void UseFirstDevice() {
  Must(FIND(cuInit)(0), "cuInit");
  CUcontext context = nullptr;
  Must(Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(
           &context, 0),
       "cuDevicePrimaryCtxRetain");
  Must(FIND(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "pointers" && argc == 3) {
    UseFirstDevice();
    return Pointers(argv[2]);
  }
  if (what == "beat" && argc == 5) {
    UseFirstDevice();
    return Beat(std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]),
                std::atoi(argv[4]));
  }
  if (what == "green" && argc == 2) {
    UseFirstDevice();
    return Green();
  }
  if (what == "hold" && argc == 4) {
    UseFirstDevice();
    return Hold(std::strtoull(argv[2], nullptr, 10), argv[3]);
  }
  std::fprintf(stderr,
               "usage: gpu_first_hour pointers FILE | beat BYTES MS S | green "
               "| hold BYTES FILE\n");
  return 2;
}
