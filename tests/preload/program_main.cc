#include <cuda.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

// A CUDA program that knows nothing of gmb. Its arguments are how it finds the
// driver (linked, dlsym, proc: through cuGetProcAddress as the runtime does,
// thread: the same for each thread's default stream) and what it does, one step
// an argument; each prints a line with the driver's answer.

#define PROGRAM_FUNCTIONS(F)   \
  F(cuInit)                    \
  F(cuDevicePrimaryCtxRetain)  \
  F(cuCtxPushCurrent)          \
  F(cuStreamCreate)            \
  F(cuStreamSynchronize)       \
  F(cuStreamBeginCapture)      \
  F(cuStreamEndCapture)        \
  F(cuMemcpyHtoDAsync)         \
  F(cuMemAlloc)                \
  F(cuMemAllocPitch)           \
  F(cuMemAllocManaged)         \
  F(cuMemAllocAsync)           \
  F(cuMemAllocFromPoolAsync)   \
  F(cuDeviceGetDefaultMemPool) \
  F(cuMemPoolCreate)           \
  F(cuMemPoolTrimTo)           \
  F(cuMemFree)                 \
  F(cuMemFreeAsync)            \
  F(cuMemGetInfo)              \
  F(cuMemGetAddressRange)

#define SYMBOL_TEXT_OF(x) #x
#define SYMBOL_TEXT(x) SYMBOL_TEXT_OF(x)

namespace {

struct Api {
#define PROGRAM_MEMBER(name) decltype(&::name) name##_;
  PROGRAM_FUNCTIONS(PROGRAM_MEMBER)
#undef PROGRAM_MEMBER
};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

void* Require(void* found, const char* name) {
  if (found == nullptr) {
    std::printf("no %s\n", name);
    std::exit(9);
  }
  return found;
}

Api LoadApi(const std::string& how) {
  Api api{};
#ifdef PROGRAM_IS_LINKED
  if (how == "linked") {
#define PROGRAM_TAKE(name) api.name##_ = &::name;
    PROGRAM_FUNCTIONS(PROGRAM_TAKE)
#undef PROGRAM_TAKE
    return api;
  }
#endif
  void* const driver = Require(dlopen("libcuda.so.1", RTLD_NOW), "driver");
  if (how == "dlsym") {
#define PROGRAM_LOOK_UP(name)                        \
  api.name##_ = reinterpret_cast<decltype(&::name)>( \
      Require(dlsym(driver, SYMBOL_TEXT(name)), #name));
    PROGRAM_FUNCTIONS(PROGRAM_LOOK_UP)
#undef PROGRAM_LOOK_UP
    return api;
  }
  const cuuint64_t flags = how == "thread" ? 2 : 0;
  auto get =
      reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  // As the CUDA runtime does: that function, from itself.
  void* own = nullptr;
  get("cuGetProcAddress", &own, 12000, flags, nullptr);
  get = reinterpret_cast<GetProcAddress>(Require(own, "cuGetProcAddress"));
  const auto find = [&](const char* name) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    get(name, &found, 12040, flags, &status);
    return Require(found, name);
  };
#define PROGRAM_ASK(name) \
  api.name##_ = reinterpret_cast<decltype(&::name)>(find(#name));
  PROGRAM_FUNCTIONS(PROGRAM_ASK)
#undef PROGRAM_ASK
  return api;
}

std::vector<std::string> Words(const std::string& step) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < step.size()) {
    const size_t end = std::min(step.find(' ', at), step.size());
    words.push_back(step.substr(at, end - at));
    at = end + 1;
  }
  words.resize(5);
  return words;
}

class Program {
 public:
  explicit Program(const Api& api) : api_(api) {
    CUcontext context = nullptr;
    api_.cuInit_(0);
    api_.cuDevicePrimaryCtxRetain_(&context, 0);
    api_.cuCtxPushCurrent_(context);
    for (CUstream& stream : streams_) api_.cuStreamCreate_(&stream, 0);
  }

  void Do(const std::string& step) {
    const std::vector<std::string> words = Words(step);
    if (!Memory(words) && !Order(words) && !Ask(words)) Process(words, step);
    std::fflush(stdout);
  }

 private:
  static uint64_t Number(const std::string& text) {
    return std::strtoull(text.c_str(), nullptr, 10);
  }
  CUstream Stream(const std::string& text) const {
    return streams_.at(Number(text));
  }
  void Say(const std::string& what, const std::string& name,
           CUresult result) const {
    std::printf("%s %s %d\n", what.c_str(), name.c_str(), result);
  }

  bool Memory(const std::vector<std::string>& words) {
    const auto& [what, name, size] = std::tie(words[0], words[1], words[2]);
    CUdeviceptr& at = memory_[name];
    if (what == "alloc") {
      Say(what, name, api_.cuMemAlloc_(&at, Number(size)));
    } else if (what == "managed") {
      Say(what, name, api_.cuMemAllocManaged_(&at, Number(size), 1));
    } else if (what == "pitch") {
      size_t pitch = 0;
      const CUresult result =
          api_.cuMemAllocPitch_(&at, &pitch, Number(size), Number(words[3]), 4);
      std::printf("pitch %s %d %zu\n", name.c_str(), result, pitch);
    } else if (what == "free") {
      Say(what, name, api_.cuMemFree_(at));
    } else if (what == "free-at") {
      Say(what, name, api_.cuMemFree_(at + Number(size)));
    } else if (what == "write") {
      std::memset(reinterpret_cast<void*>(at), 0x5A, Number(size));
      Say(what, name, CUDA_SUCCESS);
    } else if (what == "range") {
      CUdeviceptr start = 0;
      size_t bytes = 0;
      const CUresult result =
          api_.cuMemGetAddressRange_(&start, &bytes, at + Number(size));
      std::printf("range %s %d %lld %zu\n", name.c_str(), result,
                  static_cast<long long>(start - at), bytes);
    } else {
      return false;
    }
    return true;
  }

  bool Order(const std::vector<std::string>& words) {
    const auto& [what, name, size, stream] =
        std::tie(words[0], words[1], words[2], words[3]);
    CUdeviceptr& at = memory_[name];
    if (what == "alloc-async") {
      Say(what, name, api_.cuMemAllocAsync_(&at, Number(size), Stream(stream)));
    } else if (what == "alloc-pool" || what == "alloc-shared-pool") {
      Say(what, name,
          api_.cuMemAllocFromPoolAsync_(&at, Number(size),
                                        Pool(what == "alloc-shared-pool"),
                                        Stream(stream)));
    } else if (what == "free-async") {
      Say(what, name, api_.cuMemFreeAsync_(at, Stream(size)));
    } else if (what == "work") {
      Say(what, name,
          api_.cuMemcpyHtoDAsync_(at, &source_, sizeof(source_), Stream(size)));
    } else if (what == "same") {
      std::printf("same %d\n", at == memory_[size] ? 1 : 0);
    } else if (what == "synchronize") {
      Say(what, name, api_.cuStreamSynchronize_(Stream(name)));
    } else if (what == "begin-capture") {
      Say(what, name,
          api_.cuStreamBeginCapture_(Stream(name),
                                     CU_STREAM_CAPTURE_MODE_GLOBAL));
    } else if (what == "end-capture") {
      CUgraph graph = nullptr;
      Say(what, name, api_.cuStreamEndCapture_(Stream(name), &graph));
    } else {
      return false;
    }
    return true;
  }

  CUmemoryPool Pool(bool shared) const {
    CUmemoryPool pool = nullptr;
    if (!shared) {
      api_.cuDeviceGetDefaultMemPool_(&pool, 0);
      return pool;
    }
    CUmemPoolProps properties{};
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    api_.cuMemPoolCreate_(&pool, &properties);
    return pool;
  }

  bool Ask(const std::vector<std::string>& words) {
    if (words[0] == "info") {
      size_t free_bytes = 0;
      size_t total_bytes = 0;
      const CUresult result = api_.cuMemGetInfo_(&free_bytes, &total_bytes);
      std::printf("info %d %zu %zu\n", result, free_bytes, total_bytes);
    } else if (words[0] == "trim") {
      Say("trim", "", api_.cuMemPoolTrimTo_(Pool(false), 0));
    } else {
      return false;
    }
    return true;
  }

  // await FILE, fork STEP, environment NAME, exit CODE
  void Process(const std::vector<std::string>& words, const std::string& step) {
    struct stat info {};
    if (words[0] == "await") {
      while (stat(words[1].c_str(), &info) != 0) usleep(5000);
    } else if (words[0] == "fork") {
      const pid_t child = fork();
      if (child == 0) {
        Do(step.substr(5));
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      std::printf("child %d\n", status);
    } else if (words[0] == "exit") {
      std::exit(static_cast<int>(Number(words[1])));
    } else if (words[0] == "environment") {
      const char* const value = std::getenv(words[1].c_str());
      std::printf("%s=%s\n", words[1].c_str(), value == nullptr ? "" : value);
    } else {
      std::printf("what is %s?\n", step.c_str());
      std::exit(8);
    }
  }

  const Api api_;
  std::array<CUstream, 3> streams_{};
  std::map<std::string, CUdeviceptr> memory_;
  uint64_t source_ = 7;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Program program(LoadApi(argv[1]));
  for (int i = 2; i < argc; ++i) program.Do(argv[i]);
  std::printf("end\n");
  return 0;
}
