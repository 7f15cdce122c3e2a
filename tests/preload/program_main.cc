#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "tests/device/driver_of_programs.h"
#include "tests/preload/program_api.h"
#include "tests/preload/program_future.h"
#include "tests/preload/program_ipc.h"
#include "tests/preload/program_mishaps.h"
#include "tests/preload/program_peers.h"
#include "tests/preload/program_pointers.h"
#include "tests/preload/program_refusal.h"
#include "tests/preload/program_virtual.h"

// A CUDA program that knows nothing of gmb. Its arguments are how it finds the
// driver (program_api.h) and what it does, one step an argument; each prints a
// line with the driver's answer.

namespace {

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
    // Also for a step that asks too early.
    if (std::getenv("PROGRAM_CREATES_FIRST") != nullptr)
      Do("create early 2097152");
    api_.cuInit_(0);
    UseDevice(0);
    for (int i = 0; i < 3; ++i) AddStream();
    api_.cuDeviceGetDefaultMemPool_(&pools_["default"], 0);
  }

  void Do(const std::string& step) {
    const std::vector<std::string> words = Words(step);
    if (!Memory(words) && !Order(words) && !Ask(words) && !Pools(words) &&
        !Context(words) && !virtual_.Do(words) && !ipc_.Do(words) &&
        !mishaps_.Do(words) && !future_.Do(words) && !peers_.Do(words) &&
        !pointers_.Do(words)) {
      Process(words, step);
    }
    std::fflush(stdout);
  }

 private:
  static uint64_t Number(const std::string& text) {
    return std::strtoull(text.c_str(), nullptr, 10);
  }
  CUstream Stream(const std::string& text) const {
    return text == "default" ? nullptr : streams_.at(Number(text));
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
    } else if (what == "put") {  // NAME SIZE BYTE, by the driver
      const std::vector<uint8_t> bytes(Number(size),
                                       static_cast<uint8_t>(Number(words[3])));
      Say(what, name, api_.cuMemcpyHtoD_(at, bytes.data(), bytes.size()));
    } else if (what == "get") {  // NAME SIZE: the sum of its bytes
      std::vector<uint8_t> bytes(Number(size));
      const CUresult result =
          api_.cuMemcpyDtoH_(bytes.data(), at, bytes.size());
      std::printf("get %s %d %llu\n", name.c_str(), result,
                  std::accumulate(bytes.begin(), bytes.end(), 0ULL));
    } else if (what == "ask") {  // NAME: what it is, in both ways to ask
      unsigned type = 0;
      CUdeviceptr same = 0;
      // As launchers ask; the second is answered without the driver.
      bool arguments = true;
      for (const CUdeviceptr argument : {at + 8, at + 16}) {
        CUdeviceptr answer = 0;
        arguments &=
            api_.cuPointerGetAttribute_(
                &answer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, argument) == 0 &&
            answer == argument;
      }
      const CUresult one = api_.cuPointerGetAttribute_(
          &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 8);
      CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                          CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
      void* data[] = {&same, &type};
      const CUresult many =
          api_.cuPointerGetAttributes_(2, attributes, data, at + 8);
      std::printf("ask %s %d %d %u %d\n", name.c_str(), one, many, type,
                  arguments && same == at + 8 ? 1 : 0);
    } else if (what == "argument") {  // NAME: as a launcher asks
      CUdeviceptr answer = 0;
      const CUresult result = api_.cuPointerGetAttribute_(
          &answer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at);
      std::printf("argument %s %d %d\n", name.c_str(), result,
                  answer == at ? 1 : 0);
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
    } else if (what == "alloc-pool") {
      Say(what, name,
          api_.cuMemAllocFromPoolAsync_(&at, Number(size), pools_.at(words[4]),
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
    } else if (what == "wait-context") {
      Say(what, "", api_.cuCtxSynchronize_());
    } else if (what == "wait-event") {  // STREAM
      CUevent event = nullptr;
      api_.cuEventCreate_(&event, CU_EVENT_DISABLE_TIMING);
      api_.cuEventRecord_(event, Stream(name));
      Say(what, name, api_.cuEventSynchronize_(event));
      api_.cuEventDestroy_(event);
    } else if (what == "churn") {  // STREAM FILE: until the file is there
      Say(what, name, Churn(Stream(name), size));
    } else if (what == "stream") {  // whether its work is done
      Say(what, name, api_.cuStreamQuery_(Stream(name)));
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

  [[nodiscard]] CUresult Churn(CUstream stream, const std::string& file) const {
    struct stat info {};
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && stat(file.c_str(), &info) != 0) {
      CUdeviceptr at = 0;
      result = api_.cuMemAllocAsync_(&at, 4096, stream);
      if (result == CUDA_SUCCESS) result = api_.cuMemFreeAsync_(at, stream);
      usleep(5000);
    }
    return result;
  }

  // Steps on a pool, "default" or one that it makes: new-pool and
  // new-shared-pool, use-pool (of device 0), destroy-pool, trim [TO], pool (its bytes: used, reserved, and
  // the most of each), threshold BYTES, reset-high TO
  bool Pools(const std::vector<std::string>& words) {
    const auto& [what, name, value] = std::tie(words[0], words[1], words[2]);
    if (what == "new-pool" || what == "new-shared-pool") {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      if (what == "new-shared-pool")
        properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      Say(what, name, api_.cuMemPoolCreate_(&pools_[name], &properties));
    } else if (what == "use-pool") {
      Say(what, name, api_.cuDeviceSetMemPool_(0, pools_.at(name)));
    } else if (what == "destroy-pool") {
      Say(what, name, api_.cuMemPoolDestroy_(pools_.at(name)));
    } else if (what == "trim") {
      Say(what, name, api_.cuMemPoolTrimTo_(pools_.at(name), Number(value)));
    } else if (what == "pool") {
      SayBytes(name);
    } else if (what == "threshold") {
      const CUresult set =
          Set(name, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, Number(value));
      std::printf("threshold %s %d %llu\n", name.c_str(), set,
                  Get(name, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
    } else if (what == "reset-high") {
      const CUresult used =
          Set(name, CU_MEMPOOL_ATTR_USED_MEM_HIGH, Number(value));
      const CUresult reserved =
          Set(name, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, Number(value));
      Say(what, name, used == CUDA_SUCCESS ? reserved : used);
    } else {
      return false;
    }
    return true;
  }
  void SayBytes(const std::string& name) const {
    std::printf("pool %s", name.c_str());
    for (const CUmemPool_attribute bytes :
         {CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
          CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH,
          CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH}) {
      std::printf(" %llu", Get(name, bytes));
    }
    std::printf("\n");
  }
  CUresult Set(const std::string& name, CUmemPool_attribute what,
               cuuint64_t value) const {
    return api_.cuMemPoolSetAttribute_(pools_.at(name), what, &value);
  }
  unsigned long long Get(const std::string& name,
                         CUmemPool_attribute what) const {
    cuuint64_t value = 0;
    api_.cuMemPoolGetAttribute_(pools_.at(name), what, &value);
    return value;
  }

  bool Ask(const std::vector<std::string>& words) {
    if (words[0] != "info") return false;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const CUresult result = api_.cuMemGetInfo_(&free_bytes, &total_bytes);
    std::printf("info %d %zu %zu\n", result, free_bytes, total_bytes);
    return true;
  }

  CUresult UseDevice(CUdevice device) const {
    CUcontext context = nullptr;
    const CUresult result = api_.cuDevicePrimaryCtxRetain_(&context, device);
    return result != CUDA_SUCCESS ? result : api_.cuCtxPushCurrent_(context);
  }
  CUresult AddStream() {
    return api_.cuStreamCreate_(&streams_.emplace_back(), 0);
  }
  CUresult NewContext(CUdevice device) {
    return api_.cuCtxCreate_(&context_, nullptr, 0, device);
  }

  // device N, pop, reset N, release N: of primary contexts; new-context N,
  // attach-context, detach-context and destroy-context; new-green N and destroy-green; add-stream: one more, in the current context
  bool Context(const std::vector<std::string>& words) {
    const std::string& what = words[0];
    const auto device = static_cast<CUdevice>(Number(words[1]));
    CUcontext popped = nullptr;
    if (what == "device") {
      Say(what, words[1], UseDevice(device));
    } else if (what == "pop") {
      Say(what, "", api_.cuCtxPopCurrent_(&popped));
    } else if (what == "reset") {
      Say(what, words[1], api_.cuDevicePrimaryCtxReset_(device));
    } else if (what == "release-primary") {
      Say(what, words[1], api_.cuDevicePrimaryCtxRelease_(device));
    } else if (what == "new-green") {
      CUcontext context = nullptr;
      api_.cuGreenCtxCreate_(&green_, nullptr, device, 0);
      api_.cuCtxFromGreenCtx_(&context, green_);
      Say(what, words[1], api_.cuCtxPushCurrent_(context));
    } else if (what == "destroy-green") {
      Say(what, "", api_.cuGreenCtxDestroy_(green_));
    } else if (what == "new-context") {
      Say(what, words[1], NewContext(device));
    } else if (what == "destroy-context") {
      Say(what, "", api_.cuCtxDestroy_(context_));
    } else if (what == "attach-context") {
      CUcontext current = nullptr;
      Say(what, "", api_.cuCtxAttach_(&current, 0));
    } else if (what == "detach-context") {
      Say(what, "", api_.cuCtxDetach_(context_));
    } else if (what == "add-stream") {
      Say(what, "", AddStream());
    } else {
      return false;
    }
    return true;
  }

  static CUresult InitRank(int ranks, char communicator_id) {
    struct UniqueId {
      char bytes[128];
    } id{};
    id.bytes[127] = communicator_id;
    void* const nccl = dlopen("libnccl.so.2", RTLD_NOW);
    const auto init = reinterpret_cast<int (*)(void**, int, UniqueId, int)>(
        dlsym(nccl, "ncclCommInitRank"));
    void* communicator = nullptr;
    return static_cast<CUresult>(init(&communicator, ranks, id, 0));
  }

  // ranks N, await FILE, fork STEP, environment NAME, exit CODE
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
    } else if (words[0] == "ranks") {  // RANKS [ID]: is one of so many
      const auto id = static_cast<char>(Number(words[2]));
      Say(words[0], words[1],
          InitRank(static_cast<int>(Number(words[1])), id == 0 ? '*' : id));
    } else if (words[0] == "refuse-membarrier") {
      std::printf("refuse-membarrier %d\n", RefuseMembarrier() ? 1 : 0);
    } else if (words[0] == "deepbind" || words[0] == "open") {
      // LIBRARY: calls what it exports
      void* const library =
          dlopen(words[1].c_str(),
                 RTLD_NOW | (words[0] == "open" ? 0 : RTLD_DEEPBIND));
      const auto call = reinterpret_cast<int (*)()>(
          library == nullptr ? nullptr : dlsym(library, "CallTheDriver"));
      std::printf("%s %d\n", words[0].c_str(), call == nullptr ? -1 : call());
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
  std::vector<CUstream> streams_;
  CUcontext context_ = nullptr;  // of its own
  CUgreenCtx green_ = nullptr;
  std::map<std::string, CUdeviceptr> memory_;
  VirtualSteps virtual_{api_, &memory_};
  IpcSteps ipc_{api_, &memory_};
  MishapSteps mishaps_{api_, &memory_};
  FutureSteps future_{&memory_};
  PeerSteps peers_{api_, &memory_, &streams_};
  std::map<std::string, CUmemoryPool> pools_;
  PointerSteps pointers_{api_, &memory_, &pools_, &context_};
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
