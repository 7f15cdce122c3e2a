#include <cuda.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/driver_lookup.h"

// A program whose processes share memory by handles of legacy CUDA IPC and by the
// file descriptor of a handle of cuMemCreate, and that knows nothing of gmb.
// It says what the driver answers to each step, in the process that has the memory
// and in the one that opens it, a line each; lines that begin with "?" may differ
// under gmb.
// It finds the driver as the CUDA runtime does, so that `gmb run` serves it.

extern char** environ;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLarge = 64 * kMiB;
constexpr uint64_t kSmall = 1000;
constexpr uint64_t kHandle = 2 * kMiB;
constexpr int kHandleFd = 9;  // in the child

void* Find(const char* name) { return gmb::test::FindInDriver(name, 12000); }

// The driver's function of that name.
#define CALL(name)                                        \
  (*[] {                                                  \
    static const auto found =                             \
        reinterpret_cast<decltype(&::name)>(Find(#name)); \
    return found;                                         \
  }())

void Say(const char* who, const char* what, long long result) {
  std::printf("%s: %s: %lld\n", who, what, result);
  std::fflush(stdout);
}
void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_ipc: %s: %d\n", what, result);
  std::exit(1);
}

void UseDevice() {
  Must(CALL(cuInit)(0), "cuInit");
  CUcontext context = nullptr;
  Must(CALL(cuDevicePrimaryCtxRetain)(&context, 0), "a context");
  Must(CALL(cuCtxSetCurrent)(context), "a context");
}

// Whether all bytes are of that value.
void SayHolds(const char* who, const char* what, CUdeviceptr at, uint64_t bytes,
              uint8_t value) {
  std::vector<uint8_t> there(bytes);
  const CUresult result = CALL(cuMemcpyDtoH)(there.data(), at, bytes);
  const bool right = std::all_of(there.begin(), there.end(),
                                 [&](uint8_t byte) { return byte == value; });
  std::printf("%s: %s: %d %s\n", who, what, result, right ? "right" : "WRONG");
  std::fflush(stdout);
}
void Fill(CUdeviceptr at, uint64_t bytes, uint8_t value) {
  Must(CALL(cuMemsetD8)(at, value, bytes), "cuMemsetD8");
  Must(CALL(cuCtxSynchronize)(), "cuCtxSynchronize");
}

void SayExtent(const char* who, const char* what, CUdeviceptr base,
               CUdeviceptr at) {
  CUdeviceptr start = 0;
  size_t bytes = 0;
  const CUresult range = CALL(cuMemGetAddressRange)(&start, &bytes, at);
  CUdeviceptr same_start = 0;
  size_t same_bytes = 0;
  const CUresult one = CALL(cuPointerGetAttribute)(
      &same_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at);
  const CUresult two = CALL(cuPointerGetAttribute)(
      &same_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at);
  std::printf("%s: extent of %s: %d %lld %zu, %d %d %s\n", who, what, range,
              static_cast<long long>(start - base), bytes, one, two,
              same_start == start && same_bytes == bytes ? "same" : "OTHERS");
  int capable = 0;
  const CUresult asked = CALL(cuPointerGetAttribute)(
      &capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at);
  std::printf("? %s: %s has handles: %d %d\n", who, what, asked, capable);
  std::fflush(stdout);
}

std::string Text(const CUipcMemHandle& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += hex.data();
  }
  return text;
}
CUipcMemHandle HandleOf(const std::string& text) {
  CUipcMemHandle handle{};
  for (size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] = static_cast<char>(
        std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return handle;
}

CUresult Open(CUdeviceptr* at, const CUipcMemHandle& handle) {
  return CALL(cuIpcOpenMemHandle)(at, handle,
                                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

CUdeviceptr MapHandle(CUmemGenericAllocationHandle handle) {
  CUdeviceptr at = 0;
  Must(CALL(cuMemAddressReserve)(&at, kHandle, 0, 0, 0), "an address");
  Must(CALL(cuMemMap)(at, kHandle, 0, handle, 0), "cuMemMap");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Must(CALL(cuMemSetAccess)(at, kHandle, &access, 1), "cuMemSetAccess");
  return at;
}

// --- The process that opens them.

int Child(const CUipcMemHandle& large, const CUipcMemHandle& small) {
  UseDevice();
  constexpr char kMe[] = "child";
  CUdeviceptr x = 0;
  CUdeviceptr again = 0;
  CUdeviceptr s = 0;
  Say(kMe, "open the large one", Open(&x, large));
  Say(kMe, "open it again", Open(&again, large));
  Say(kMe, "at the same address", x == again ? 1 : 0);
  Say(kMe, "open the small one", Open(&s, small));
  SayHolds(kMe, "the large one", x, kLarge, 3);
  SayHolds(kMe, "the small one", s, kSmall, 4);
  SayExtent(kMe, "the large one", x, x + 5);
  CUipcMemHandle other = large;
  for (char& byte : other.reserved) byte = static_cast<char>(byte ^ 0x55);
  CUdeviceptr none = 0;
  std::printf("? %s: open garbage: %d\n", kMe, Open(&none, other));
  Fill(x, kLarge, 5);
  Fill(s, kSmall, 6);
  Say(kMe, "close once", CALL(cuIpcCloseMemHandle)(again));
  SayHolds(kMe, "the large one after it", x, kLarge, 5);
  Say(kMe, "close the large one", CALL(cuIpcCloseMemHandle)(x));
  Say(kMe, "close the small one", CALL(cuIpcCloseMemHandle)(s));
  std::printf("? %s: close once more: %d\n", kMe, CALL(cuIpcCloseMemHandle)(x));

  CUmemGenericAllocationHandle handle = 0;
  Say(kMe, "import the descriptor",
      CALL(cuMemImportFromShareableHandle)(
          &handle, reinterpret_cast<void*>(static_cast<intptr_t>(kHandleFd)),
          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const CUdeviceptr v = MapHandle(handle);
  SayHolds(kMe, "the handle's memory", v, kHandle, 7);
  Fill(v, kHandle, 8);
  return 0;
}

// --- The process that has the memory.

int RunChild(const CUipcMemHandle& large, const CUipcMemHandle& small, int fd) {
  std::array<std::string, 4> words = {"gpu_ipc", "child", Text(large),
                                      Text(small)};
  std::array<char*, 5> argv{};
  for (size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  if (fd >= 0) posix_spawn_file_actions_adddup2(&actions, fd, kHandleFd);
  pid_t child = 0;
  const int started = posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                  argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (started == 0) waitpid(child, &status, 0);
  return status;
}

int Share() {
  UseDevice();
  constexpr char kMe[] = "parent";
  CUdeviceptr x = 0;
  CUdeviceptr before = 0;
  CUdeviceptr s = 0;
  Must(CALL(cuMemAlloc)(&x, kLarge), "cuMemAlloc");
  Must(CALL(cuMemAlloc)(&before, kSmall), "cuMemAlloc");
  Must(CALL(cuMemAlloc)(&s, kSmall), "cuMemAlloc");
  Fill(x, kLarge, 3);
  Fill(before, kSmall, 9);
  Fill(s, kSmall, 4);
  SayExtent(kMe, "the large one", x, x + 40 * kMiB);
  SayExtent(kMe, "the small one", s, s + 5);
  CUipcMemHandle large{};
  CUipcMemHandle small{};
  CUipcMemHandle same{};
  Say(kMe, "a handle of the large one", CALL(cuIpcGetMemHandle)(&large, x));
  Say(kMe, "once more", CALL(cuIpcGetMemHandle)(&same, x));
  Say(kMe, "the same", std::memcmp(&large, &same, sizeof(same)) == 0 ? 1 : 0);
  Say(kMe, "a handle of the small one", CALL(cuIpcGetMemHandle)(&small, s));
  CUdeviceptr own = 0;
  std::printf("? %s: open its own: %d\n", kMe, Open(&own, large));

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  Must(CALL(cuMemCreate)(&handle, kHandle, &properties, 0), "cuMemCreate");
  const CUdeviceptr v = MapHandle(handle);
  Fill(v, kHandle, 7);
  int fd = -1;
  Say(kMe, "export the handle",
      CALL(cuMemExportToShareableHandle)(
          &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  Say(kMe, "the child ends with", RunChild(large, small, fd));
  SayHolds(kMe, "the large one afterwards", x, kLarge, 5);
  SayHolds(kMe, "the small one afterwards", s, kSmall, 6);
  SayHolds(kMe, "the one before it", before, kSmall, 9);
  SayHolds(kMe, "the handle's memory afterwards", v, kHandle, 8);
  Say(kMe, "free", CALL(cuMemFree)(x));
  Say(kMe, "free", CALL(cuMemFree)(s));
  Say(kMe, "free", CALL(cuMemFree)(before));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "child") == 0)
    return Child(HandleOf(argv[2]), HandleOf(argv[3]));
  if (argc == 1) return Share();
  std::fprintf(stderr, "usage: gpu_ipc\n");
  return 2;
}
