#include "tests/preload/program_mishaps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

// A function that the fake driver alone has.
template <typename Function>
Function OfDriver(const char* name) {
  return reinterpret_cast<Function>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

void DuringCopy(void (*what)()) {
  OfDriver<void (*)(void (*)())>("FakeCudaDuringCopy")(what);
}

void AwaitFile(const std::string& file) {
  struct stat info {};
  while (stat(file.c_str(), &info) != 0) usleep(5000);
}

void* InContext(const Api& api) {
  CUcontext context = nullptr;
  api.cuDevicePrimaryCtxRetain_(&context, 0);
  api.cuCtxPushCurrent_(context);
  return context;
}

// Only what the child says; the parent's words are out already.
void ForkAndAsk() {
  const auto ask = reinterpret_cast<decltype(&::cuMemGetInfo)>(
      dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2"));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    std::printf("child says %d\n",
                ask == nullptr ? -1 : ask(&free_bytes, &total_bytes));
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

CUresult MishapSteps::Copy(const std::string& name) const {
  const uint64_t source = 0;
  return api_.cuMemcpyHtoD_(memory_[name], &source, sizeof(source));
}

void MishapSteps::EndInCopy(const std::string& name, bool unwound) {
  if (unwound) {
    DuringCopy([] { pthread_exit(nullptr); });
  } else {
    // No destructor of anything is called.
    DuringCopy([] { syscall(SYS_exit, 0); });
  }
  auto work = std::make_pair(this, name);
  pthread_t thread{};
  pthread_create(
      &thread, nullptr,
      [](void* what) -> void* {
        const auto& [self, at] = *static_cast<decltype(work)*>(what);
        InContext(self->api_);
        static_cast<void>(self->Copy(at));
        return what;  // it did not end
      },
      &work);
  void* result = &work;
  pthread_join(thread, &result);
  std::printf("end-in-copy %s %d\n", name.c_str(), result == &work ? 0 : 1);
}

void MishapSteps::CancelCopy(const std::string& name, const std::string& file) {
  auto work = std::make_pair(this, name);
  pthread_t thread{};
  pthread_create(
      &thread, nullptr,
      [](void* what) -> void* {
        const auto& [self, at] = *static_cast<decltype(work)*>(what);
        InContext(self->api_);
        std::printf("copied %d\n", self->Copy(at));
        for (;;) pause();  // here at the latest
      },
      &work);
  AwaitFile(file);
  pthread_cancel(thread);
  std::printf("cancelled\n");
  std::fflush(stdout);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("cancel-copy %s %d\n", name.c_str(),
              result == PTHREAD_CANCELED ? 1 : 0);
}

void MishapSteps::Pin(const std::string& file) const {
  static std::string until;
  static char page[4096];
  until = file;
  OfDriver<void (*)(void (*)())>("FakeCudaDuringPinning")([] {
    std::printf("pinning\n");
    std::fflush(stdout);
    AwaitFile(until);
  });
  const CUresult result = api_.cuMemHostRegister_(page, sizeof(page), 0);
  std::printf("pin %d\n", result);
  if (result == CUDA_SUCCESS) api_.cuMemHostUnregister_(page);
}

// As a server that stages what it is sent in page-locked memory.
void MishapSteps::PinNowAndThen(const std::string& file) const {
  static char page[4096];
  OfDriver<void (*)(void (*)())>("FakeCudaDuringPinning")(
      [] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); });
  int count = 0;
  while (::access(file.c_str(), F_OK) != 0) {
    if (api_.cuMemHostRegister_(page, sizeof(page), 0) != CUDA_SUCCESS) break;
    api_.cuMemHostUnregister_(page);
    std::printf("pinned %d\n", ++count);
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
}

bool MishapSteps::Do(const std::vector<std::string>& words) {
  const std::string& what = words[0];
  const std::string& name = words[1];
  if (what == "end-in-copy") {
    EndInCopy(name, words[2] == "exit");
  } else if (what == "cancel-copy") {
    CancelCopy(name, words[2]);
  } else if (what == "fork-in-copy") {
    DuringCopy(&ForkAndAsk);
    std::printf("fork-in-copy %s %d\n", name.c_str(), Copy(name));
  } else if (what == "pin") {
    Pin(name);
  } else if (what == "pin-often") {
    PinNowAndThen(name);
  } else if (what == "refuse-threads") {
    reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "RefuseThreads"))();
    std::printf("refuse-threads\n");
  } else if (what == "gpu-done") {
    OfDriver<void (*)()>("FakeCudaFinishWork")();
    std::printf("gpu-done\n");
  } else if (what == "fault-here") {
    OfDriver<void (*)(CUresult)>("FakeCudaFaultHere")(
        static_cast<CUresult>(std::strtol(name.c_str(), nullptr, 10)));
    std::printf("fault-here %s\n", name.c_str());
  } else if (what == "fault") {
    OfDriver<void (*)(CUresult)>("FakeCudaFault")(
        static_cast<CUresult>(std::strtol(name.c_str(), nullptr, 10)));
    std::printf("fault %s\n", name.c_str());
  } else {
    return false;
  }
  return true;
}
