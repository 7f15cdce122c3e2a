#include <cuda.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gpu/driver_lookup.h"

// A program that makes its memory by cuMemCreate and maps it itself, and knows
// nothing of gmb.
//   gpu_vmm sequence         what the driver answers to each step, a line each;
//                            lines that begin with "?" may differ under gmb
//   gpu_vmm mistakes         the same, of what no driver promises to survive
//   gpu_vmm cost N BYTES     microseconds for each of N handles
//   gpu_vmm lend N DIR       has N handles of 20 MiB and more at two addresses
//                            each, says "ready", and looks at all bytes when
//                            DIR/go-1 and DIR/go-2 appear
// It finds the driver as the CUDA runtime does, so that `gmb run` serves it.

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

void* Find(const char* name) { return gmb::test::FindInDriver(name, 12000); }

// The driver's function of that name.
#define CALL(name)                                        \
  (*[] {                                                  \
    static const auto found =                             \
        reinterpret_cast<decltype(&::name)>(Find(#name)); \
    return found;                                         \
  }())

void Say(const char* what, CUresult result) {
  std::printf("%s: %d\n", what, result);
}
void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_vmm: %s: %d\n", what, result);
  std::exit(1);
}

CUmemAllocationProp Properties(unsigned types = 0) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes =
      static_cast<CUmemAllocationHandleType>(types);
  return properties;
}

CUresult Create(CUmemGenericAllocationHandle* handle, uint64_t bytes,
                unsigned types = 0) {
  const CUmemAllocationProp properties = Properties(types);
  return CALL(cuMemCreate)(handle, bytes, &properties, 0);
}

CUresult SetAccess(
    CUdeviceptr at, uint64_t bytes,
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = flags;
  return CALL(cuMemSetAccess)(at, bytes, &access, 1);
}

CUdeviceptr Reserve(uint64_t bytes) {
  CUdeviceptr at = 0;
  Must(CALL(cuMemAddressReserve)(&at, bytes, 2 * kMiB, 0, 0),
       "cuMemAddressReserve");
  return at;
}

// Whether all bytes are of that value.
bool Holds(CUdeviceptr at, uint64_t bytes, uint8_t value) {
  std::vector<uint8_t> there(bytes);
  const CUresult result = CALL(cuMemcpyDtoH)(there.data(), at, bytes);
  if (result != CUDA_SUCCESS) {
    std::printf("  the copy says %d\n", result);
    return false;
  }
  return std::all_of(there.begin(), there.end(),
                     [&](uint8_t byte) { return byte == value; });
}
void SayHolds(const char* what, CUdeviceptr at, uint64_t bytes, uint8_t value) {
  std::printf("%s: %s\n", what, Holds(at, bytes, value) ? "right" : "WRONG");
}

void SayRange(const char* what, CUdeviceptr base, CUdeviceptr at) {
  CUdeviceptr start = 0;
  size_t bytes = 0;
  const CUresult result = CALL(cuMemGetAddressRange)(&start, &bytes, at);
  std::printf("%s: %d %lld %zu\n", what, result,
              static_cast<long long>(start - base), bytes);
}

void OneHandle(CUdeviceptr v) {
  const uint64_t bytes = 64 * kMiB;
  const CUdeviceptr alias = v + 128 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  Say("create 64 MiB", Create(&handle, bytes));
  Say("map", CALL(cuMemMap)(v, bytes, 0, handle, 0));
  Say("map over it", CALL(cuMemMap)(v, bytes, 0, handle, 0));
  Say("map at a second address", CALL(cuMemMap)(alias, bytes, 0, handle, 0));
  Say("access", SetAccess(v, bytes));
  Say("read access", SetAccess(alias, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ));
  Say("write", CALL(cuMemsetD8)(v, 3, bytes));
  SayHolds("bytes at the second address", alias, bytes, 3);
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  unsigned long long flags = 9;
  const CUresult asked = CALL(cuMemGetAccess)(&flags, &location, alias);
  std::printf("access of the second: %d %llu\n", asked, flags);
  SayRange("range of the second", v, alias + 5);
  size_t size = 0;
  const CUresult ranged =
      CALL(cuMemGetAddressRange)(nullptr, &size, v + 7 * kMiB);
  std::printf("size alone: %d %zu\n", ranged, size);
  CUmemGenericAllocationHandle again = 0;
  Say("retain", CALL(cuMemRetainAllocationHandle)(
                    &again, reinterpret_cast<void*>(alias + 5)));
  std::printf("the same handle: %d\n", again == handle ? 1 : 0);
  Say("release", CALL(cuMemRelease)(again));
  CUmemAllocationProp properties{};
  const CUresult known =
      CALL(cuMemGetAllocationPropertiesFromHandle)(&properties, handle);
  std::printf("properties: %d type %d location %d types %d\n", known,
              static_cast<int>(properties.type),
              static_cast<int>(properties.location.type),
              static_cast<int>(properties.requestedHandleTypes));
  unsigned kind = 0;
  Say("pointer's memory type",
      CALL(cuPointerGetAttribute)(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  alias));
  std::printf("  is %u\n", kind);
  int ordinal = -1;
  Say("pointer's device",
      CALL(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  alias));
  std::printf("  is %d\n", ordinal);
  CUdeviceptr start = 0;
  Say("? pointer's range",
      CALL(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  alias + 60 * kMiB));
  std::printf("?   begins at %lld MiB\n",
              static_cast<long long>(start - v) / static_cast<long long>(kMiB));
  Say("release while it is mapped", CALL(cuMemRelease)(handle));
  SayHolds("bytes after that", alias, bytes, 3);
  Say("unmap over the hole", CALL(cuMemUnmap)(v, 192 * kMiB));
  SayRange("? range of what is gone", v, alias);
}

void Neighbours(CUdeviceptr v) {
  CUmemGenericAllocationHandle handles[3] = {};
  const uint64_t bytes[3] = {20 * kMiB, 2 * kMiB, 20 * kMiB};
  const uint64_t at[3] = {0, 20 * kMiB, 24 * kMiB};
  for (int i = 0; i < 3; ++i) {
    Say("create a neighbour", Create(&handles[i], bytes[i],
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    Say("map it", CALL(cuMemMap)(v + at[i], bytes[i], 0, handles[i], 0));
  }
  Say("access to two", SetAccess(v, 22 * kMiB));
  Say("? access over a hole", SetAccess(v, 44 * kMiB));
  Say("access to the third", SetAccess(v + at[2], bytes[2]));
  Say("write over both", CALL(cuMemsetD8)(v, 7, 22 * kMiB));
  SayHolds("bytes of both", v, 22 * kMiB, 7);
  Say("? access to a part", SetAccess(v, 2 * kMiB));
  Say("? unmap a part", CALL(cuMemUnmap)(v, 2 * kMiB));
  int fd = -1;
  Say("? export",
      CALL(cuMemExportToShareableHandle)(
          &fd, handles[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  Say("? free the addresses while mapped",
      CALL(cuMemAddressFree)(v, 256 * kMiB));
  for (const auto handle : handles)
    Say("release a neighbour", CALL(cuMemRelease)(handle));
  Say("unmap all", CALL(cuMemUnmap)(v, 44 * kMiB));
}

void Odd(CUdeviceptr v) {
  CUmemGenericAllocationHandle handle = 0;
  Say("? create for other machines", Create(&handle, 4 * kMiB, 9));
  Say("create no whole unit", Create(&handle, 3 * kMiB + 1));
  Say("create 64 MiB", Create(&handle, 64 * kMiB));
  Say("map a part", CALL(cuMemMap)(v, 32 * kMiB, 0, handle, 0));
  CALL(cuMemUnmap)(v, 32 * kMiB);
  Say("? map from an offset",
      CALL(cuMemMap)(v, 32 * kMiB, 32 * kMiB, handle, 0));
  CALL(cuMemUnmap)(v, 32 * kMiB);
  Say("release", CALL(cuMemRelease)(handle));
  size_t free_bytes = 0;
  size_t total = 0;
  Must(CALL(cuMemGetInfo)(&free_bytes, &total), "cuMemGetInfo");
  Say("more than there is", Create(&handle, (total / 2 * 3) & ~(2 * kMiB - 1)));
}

int Sequence() {
  const CUdeviceptr v = Reserve(256 * kMiB);
  int fabric = -1;
  CALL(cuDeviceGetAttribute)(&fabric, static_cast<CUdevice_attribute>(128), 0);
  std::printf("? handles for other machines: %d\n", fabric);
  OneHandle(v);
  Neighbours(v);
  Odd(v);
  Say("free the addresses", CALL(cuMemAddressFree)(v, 256 * kMiB));
  return 0;
}

int Mistakes() {
  const CUdeviceptr v = Reserve(256 * kMiB);
  CUmemGenericAllocationHandle handle = 0;
  Say("create", Create(&handle, 4 * kMiB));
  Say("map", CALL(cuMemMap)(v, 4 * kMiB, 0, handle, 0));
  Say("access", SetAccess(v, 4 * kMiB));
  Say("release", CALL(cuMemRelease)(handle));
  Say("release again", CALL(cuMemRelease)(handle));
  Say("map what was released",
      CALL(cuMemMap)(v + 8 * kMiB, 4 * kMiB, 0, handle, 0));
  Say("unmap", CALL(cuMemUnmap)(v, 4 * kMiB));
  Say("unmap again", CALL(cuMemUnmap)(v, 4 * kMiB));
  return 0;
}

double Microseconds(std::chrono::steady_clock::time_point since, size_t count) {
  const std::chrono::duration<double, std::micro> took =
      std::chrono::steady_clock::now() - since;
  return took.count() / static_cast<double>(count);
}

int Cost(size_t count, uint64_t bytes) {
  const CUdeviceptr v = Reserve(count * bytes);
  std::vector<CUmemGenericAllocationHandle> handles(count);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (int round = 0; round < 3; ++round) {
    auto began = now();
    for (auto& handle : handles) Must(Create(&handle, bytes), "cuMemCreate");
    const double create = Microseconds(began, count);
    began = now();
    for (size_t i = 0; i < count; ++i) {
      Must(CALL(cuMemMap)(v + i * bytes, bytes, 0, handles[i], 0), "cuMemMap");
    }
    const double map = Microseconds(began, count);
    began = now();
    Must(SetAccess(v, count * bytes), "cuMemSetAccess");
    const double access = Microseconds(began, count);
    began = now();
    Must(CALL(cuMemUnmap)(v, count * bytes), "cuMemUnmap");
    const double unmap = Microseconds(began, count);
    began = now();
    for (const auto handle : handles)
      Must(CALL(cuMemRelease)(handle), "cuMemRelease");
    const double release = Microseconds(began, count);
    std::printf(
        "us a handle of %llu MiB: create %.1f map %.1f access %.1f "
        "unmap %.1f release %.1f, all %.1f\n",
        static_cast<unsigned long long>(bytes / kMiB), create, map, access,
        unmap, release, create + map + access + unmap + release);
  }
  return 0;
}

// Handles of several sizes, so that some are more than one slab.
class Lender {
 public:
  // The first handle is as large as half of the others together.
  explicit Lender(uint64_t handles)
      : half_(handles * 40 * kMiB), at_(Reserve(2 * half_)) {
    for (uint64_t i = 0; i < handles; ++i) {
      const uint64_t bytes = (i == 0 ? handles * 10 + 8 : 20) * kMiB;
      CUmemGenericAllocationHandle handle = 0;
      Must(Create(&handle, bytes), "cuMemCreate");
      Must(CALL(cuMemMap)(at_ + used_, bytes, 0, handle, 0), "cuMemMap");
      Must(CALL(cuMemMap)(Alias(used_), bytes, 0, handle, 0), "cuMemMap");
      Must(SetAccess(at_ + used_, bytes), "cuMemSetAccess");
      Must(SetAccess(Alias(used_), bytes, CU_MEM_ACCESS_FLAGS_PROT_READ),
           "cuMemSetAccess");
      if (i % 2 == 0) Must(CALL(cuMemRelease)(handle), "cuMemRelease");
      pieces_.push_back({used_, bytes});
      used_ += bytes;
    }
    Write();
  }
  void Write() {
    ++turn_;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      Must(CALL(cuMemsetD8)(at_ + pieces_[i].start, Value(i), pieces_[i].bytes),
           "cuMemsetD8");
    }
    Must(CALL(cuCtxSynchronize)(), "cuCtxSynchronize");
  }
  // One byte, for which all of it has to be there.
  [[nodiscard]] bool First() const { return Holds(Alias(0), 1, Value(0)); }
  [[nodiscard]] bool All() const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (!Holds(Alias(pieces_[i].start), pieces_[i].bytes, Value(i)))
        return false;
    }
    return true;
  }

 private:
  struct Piece {
    uint64_t start;
    uint64_t bytes;
  };
  [[nodiscard]] CUdeviceptr Alias(uint64_t offset) const {
    return at_ + half_ + offset;
  }
  [[nodiscard]] uint8_t Value(size_t i) const {
    return static_cast<uint8_t>(i * 3 + turn_);
  }

  const uint64_t half_;
  const CUdeviceptr at_;
  uint64_t used_ = 0;
  uint64_t turn_ = 0;
  std::vector<Piece> pieces_;
};

int Lend(uint64_t handles, const std::string& dir) {
  Lender lender(handles);
  std::printf("ready\n");
  std::fflush(stdout);
  const auto is_there = [&](const std::string& name) {
    struct stat info {};
    return stat((dir + "/" + name).c_str(), &info) == 0;
  };
  for (int turn = 1; turn <= 2; ++turn) {
    while (!is_there("go-" + std::to_string(turn))) usleep(5000);
    const auto began = std::chrono::steady_clock::now();
    const bool first = lender.First();
    const double took = Microseconds(began, 1000);
    std::printf("turn %d: first byte after %.1f ms, equal %s\n", turn, took,
                first && lender.All() ? "True" : "False");
    std::fflush(stdout);
    lender.Write();
  }
  while (!is_there("end")) usleep(5000);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  CUcontext context = nullptr;
  Must(CALL(cuInit)(0), "cuInit");
  Must(CALL(cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
  Must(CALL(cuCtxPushCurrent)(context), "cuCtxPushCurrent");
  if (what == "sequence") return Sequence();
  if (what == "mistakes") return Mistakes();
  if (what == "cost" && argc == 4) {
    return Cost(std::strtoull(argv[2], nullptr, 10),
                std::strtoull(argv[3], nullptr, 10));
  }
  if (what == "lend" && argc == 4)
    return Lend(std::strtoull(argv[2], nullptr, 10), argv[3]);
  std::fprintf(stderr,
               "usage: gpu_vmm sequence|mistakes|cost N BYTES|lend N DIR\n");
  return 2;
}
