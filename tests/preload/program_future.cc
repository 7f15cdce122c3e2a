#include "tests/preload/program_future.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/device/fake_cuda/future.h"

namespace {

void* Driver() { return dlopen("libcuda.so.1", RTLD_NOW); }

void* ByProc(const char* name, int version) {
  static const auto kGet = reinterpret_cast<CUresult (*)(
      const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
      dlsym(Driver(), "cuGetProcAddress_v2"));
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  kGet(name, &found, version, 0, &status);
  return found;
}

bool IsOwn(const char* name, int version, const void* found) {
  static const auto kOwn = reinterpret_cast<void* (*)(const char*, int)>(
      dlsym(Driver(), "FakeCudaAddress"));
  return kOwn(name, version) == found;
}

CUresult Launch(void* function, CUdeviceptr to, uint64_t bytes,
                unsigned value) {
  const auto& w = fake_cuda::kFutureWords;
  return reinterpret_cast<decltype(&::cuFutureLaunch)>(function)(
      to, value, bytes, w[0], w[1], w[2], w[3], w[4], w[5], w[6], 0.5, 1.5, 2.5,
      3.5, 4.5, 5.5, 6.5, 7.5);
}

}  // namespace

void FutureSteps::Find(const std::string& name, const std::string& how) {
  const int version = how == "proc-14" ? 14000 : 13000;
  void* found = nullptr;
  if (how == "dlsym") {
    found = dlsym(Driver(), name.c_str());
  } else if (how == "dlvsym") {
    found = dlvsym(Driver(), name.c_str(), "FAKE_CUDA");
  } else if (how == "next") {
    found = dlsym(RTLD_NEXT, name.c_str());
  } else {
    found = ByProc(name.c_str(), version);
  }
  found_[name] = found;
  const bool own = IsOwn(name.c_str(), version, found);
  std::printf("find %s %s\n", name.c_str(),
              found == nullptr ? "none"
              : own            ? "own"
                               : "other");
}

void FutureSteps::Launches(CUdeviceptr to, uint64_t bytes, unsigned value) {
  constexpr size_t kThreads = 8;
  std::atomic<size_t> ready{0};
  std::atomic<int> done{0};
  std::array<std::thread, kThreads> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads[i] = std::thread([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      const uint64_t part = bytes / kThreads;
      if (Launch(found_["cuFutureLaunch"], to + i * part, part, value) ==
          fake_cuda::kFutureDone) {
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("future-launches %d\n", done.load());
}

bool FutureSteps::Do(const std::vector<std::string>& words) {
  const auto number = [&](size_t at) {
    return std::strtoull(words[at].c_str(), nullptr, 10);
  };
  const std::string& what = words[0];
  const std::string& name = words[1];
  if (what == "find") {
    Find(name, words[2]);
  } else if (what == "same-function") {
    std::printf("same-function %d\n", found_[name] == found_[words[2]] ? 1 : 0);
  } else if (what == "find-numbers") {
    size_t others = 0;
    for (size_t i = 0; i < number(1); ++i) {
      const std::string one = "cuFutureNumber" + std::to_string(i);
      void* const found = ByProc(one.c_str(), 13000);
      others += IsOwn(one.c_str(), 13000, found) ? 0 : 1;
    }
    std::printf("find-numbers %zu\n", others);
  } else if (what == "call-number") {
    const auto function = reinterpret_cast<CUresult (*)()>(
        ByProc(("cuFutureNumber" + name).c_str(), 13000));
    std::printf("call-number %d\n", function());
  } else if (what == "future-launch") {
    std::printf("future-launch %s %d\n", name.c_str(),
                Launch(found_["cuFutureLaunch"], memory_[name], number(2),
                       static_cast<unsigned>(number(3))));
  } else if (what == "future-launches") {
    Launches(memory_[name], number(2), static_cast<unsigned>(number(3)));
  } else if (what == "future-set") {
    void* const function = found_[words[4]];
    std::printf("future-set %s %d\n", name.c_str(),
                reinterpret_cast<decltype(&::cuMemsetD8_v9)>(function)(
                    memory_[name], static_cast<unsigned char>(number(3)),
                    number(2), 9));
  } else if (what == "future-alloc") {
    std::printf("future-alloc %s %d\n", name.c_str(),
                reinterpret_cast<decltype(&::cuMemAlloc_v9)>(
                    found_["cuMemAlloc"])(9, &memory_[name], number(2)));
  } else {
    return false;
  }
  return true;
}
