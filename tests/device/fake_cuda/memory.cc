#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/device/fake_cuda/state.h"

// The fake driver's memory: handles, mappings, allocations, legacy IPC.

using fake_cuda::At;
using fake_cuda::Contexts;
using fake_cuda::Enter;
using fake_cuda::kGranularityBytes;
using fake_cuda::Memory;
using fake_cuda::TheGpu;
using gmb::base::UniqueFd;

namespace {

// A memfd's mode tells the device, one of four, to whoever imports it. A slab's
// may have no bits to execute it.
mode_t ModeOf(int device) {
  return 0600 | static_cast<mode_t>((device & 3) << 1);
}
int DeviceOf(mode_t mode) { return static_cast<int>((mode >> 1) & 3); }

// The mappings from `start` on cover exactly `bytes`.
bool CoversMappings(CUdeviceptr start, uint64_t bytes) {
  const CUdeviceptr end = start + bytes;
  while (start < end) {
    const auto mapping = TheGpu().mappings.find(start);
    if (mapping == TheGpu().mappings.end()) return false;
    start += mapping->second;
  }
  return start == end;
}

// There are mappings in the range, and each lies wholly in it; it may have
// holes.
bool HoldsMappings(CUdeviceptr start, uint64_t bytes) {
  const auto& mappings = TheGpu().mappings;
  const CUdeviceptr end = start + bytes;
  const auto first = mappings.lower_bound(start);
  if (first == mappings.end() || first->first >= end) return false;
  if (first != mappings.begin()) {
    const auto& [before, its_bytes] = *std::prev(first);
    if (before + its_bytes > start) return false;
  }
  const auto& [last, its_bytes] = *std::prev(mappings.lower_bound(end));
  return last + its_bytes <= end;
}

// Where nothing is mapped, inside of a reservation.
bool IsFree(CUdeviceptr start, uint64_t bytes) {
  const auto behind = TheGpu().reservations.upper_bound(start);
  if (behind == TheGpu().reservations.begin()) return false;
  const auto& [reserved, its_bytes] = *std::prev(behind);
  if (start + bytes > reserved + its_bytes) return false;
  const auto next = TheGpu().mappings.lower_bound(start + bytes);
  return next == TheGpu().mappings.begin() ||
         std::prev(next)->first + std::prev(next)->second <= start;
}

CUresult CreateMemory(size_t bytes, Memory* memory) {
  const uint64_t others = fake_cuda::OthersBytes();
  if (others > 0 && bytes + others > TheGpu().memory->FreeBytes().value())
    return CUDA_ERROR_OUT_OF_MEMORY;
  auto slab = TheGpu().memory->Create(bytes);
  if (!slab.ok()) {
    return absl::IsResourceExhausted(slab.status()) ? CUDA_ERROR_OUT_OF_MEMORY
                                                    : CUDA_ERROR_INVALID_VALUE;
  }
  *memory = {.fd = std::get<UniqueFd>(std::move(slab->exported)),
             .bytes = bytes,
             .key = slab->key};
  return CUDA_SUCCESS;
}

// Whether this process has created that memory.
bool IsOurs(ino_t inode) {
  for (const auto& [handle, memory] : TheGpu().handles) {
    struct stat info;
    if (memory.key != 0 && fstat(memory.fd.get(), &info) == 0 &&
        info.st_ino == inode) {
      return true;
    }
  }
  return false;
}

void DropMemory(Memory memory) {
  memory.fd.reset();
  if (memory.key != 0) (void)TheGpu().memory->Destroy(memory.key);
}

// The same memory through a file description of its own.
UniqueFd Reopen(const std::string& process, int fd) {
  const std::string path = absl::StrCat("/proc/", process, "/fd/", fd);
  return UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC));
}

CUdeviceptr MapAligned(const UniqueFd& fd, uint64_t bytes) {
  char* const start = static_cast<char*>(
      mmap(nullptr, bytes + kGranularityBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  const auto address = reinterpret_cast<uintptr_t>(start);
  const uintptr_t aligned =
      (address + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
  (void)mmap(At(aligned), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             fd.get(), 0);
  return aligned;
}

struct IpcName {
  pid_t pid;
  int fd;
  uint64_t bytes;
};

}  // namespace

bool fake_cuda::Reaches(CUdeviceptr address) {
  const auto behind = TheGpu().mappings.upper_bound(address);
  if (behind == TheGpu().mappings.begin()) return true;
  const auto& [start, bytes] = *std::prev(behind);
  if (address - start >= bytes) return true;
  CUcontext context = nullptr;
  return GetCurrent(&context) == CUDA_SUCCESS &&
         TheGpu().accessible[start].count(TheGpu().contexts.at(context)) == 1;
}

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                       const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  FAKE_ENTER();
  *granularity = kGranularityBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties,
                     unsigned long long) {
  FAKE_ENTER();
  if (!TheGpu().initialized) return CUDA_ERROR_NOT_INITIALIZED;
  Memory memory;
  if (CUresult result = CreateMemory(bytes, &memory); result != CUDA_SUCCESS) {
    return result;
  }
  if (fchmod(memory.fd.get(), ModeOf(properties->location.id)) != 0) {
    DropMemory(std::move(memory));
    return CUDA_ERROR_UNKNOWN;
  }
  *handle = TheGpu().next_handle++;
  TheGpu().handles.emplace(*handle, std::move(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_LOCK();
  const auto found = TheGpu().handles.find(handle);
  if (found == TheGpu().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  DropMemory(std::move(found->second));
  TheGpu().handles.erase(found);
  return Enter(__func__);
}

CUresult cuMemExportToShareableHandle(void* fd,
                                      CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType,
                                      unsigned long long) {
  FAKE_ENTER();
  const Memory& memory = TheGpu().handles.at(handle);
  if (memory.key == 0) return CUDA_ERROR_INVALID_VALUE;  // as the driver does
  *static_cast<int*>(fd) = Reopen("self", memory.fd.get()).release();
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                        void* fd, CUmemAllocationHandleType) {
  FAKE_ENTER();
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(fd));
  struct stat info;
  if (fcntl(number, F_GET_SEALS) < 0 || fstat(number, &info) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *handle = TheGpu().next_handle++;
  TheGpu().handles.emplace(
      *handle, Memory{.fd = UniqueFd(fcntl(number, F_DUPFD_CLOEXEC, 0)),
                      .bytes = static_cast<uint64_t>(info.st_size),
                      .foreign = !IsOurs(info.st_ino)});
  return CUDA_SUCCESS;
}

// Its header may not declare it.
CUresult cuMulticastBindMem(unsigned long long, size_t,
                            CUmemGenericAllocationHandle, size_t, size_t,
                            unsigned long long) {
  FAKE_ENTER();
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  FAKE_ENTER();
  struct stat info;
  if (fstat(TheGpu().handles.at(handle).fd.get(), &info) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = DeviceOf(info.st_mode);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* start, size_t bytes, size_t,
                             CUdeviceptr, unsigned long long) {
  FAKE_ENTER();
  void* const memory = mmap(nullptr, bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *start = reinterpret_cast<CUdeviceptr>(memory);
  TheGpu().reservations.emplace(*start, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes) {
  FAKE_LOCK();
  if (TheGpu().reservations.erase(start) == 0) return CUDA_ERROR_INVALID_VALUE;
  munmap(At(start), bytes);
  return Enter(__func__);
}

CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  FAKE_ENTER();
  const Memory& memory = TheGpu().handles.at(handle);
  if (offset != 0 || bytes != memory.bytes || !IsFree(start, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  (void)mmap(At(start), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
             memory.fd.get(), 0);
  TheGpu().mappings.emplace(start, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr start, size_t bytes) {
  FAKE_LOCK();
  if (!HoldsMappings(start, bytes)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t& until_refusal = TheGpu().unmaps_until_refusal;
  if (until_refusal > 0 && --until_refusal == 0) {
    TheGpu().failed = __func__;
    return TheGpu().refusal;
  }
  (void)mmap(At(start), bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  auto& mappings = TheGpu().mappings;
  mappings.erase(mappings.lower_bound(start),
                 mappings.lower_bound(start + bytes));
  auto& accessible = TheGpu().accessible;
  accessible.erase(accessible.lower_bound(start),
                   accessible.lower_bound(start + bytes));
  return Enter(__func__);
}

CUresult cuMemSetAccess(CUdeviceptr start, size_t bytes,
                        const CUmemAccessDesc* access, size_t count) {
  FAKE_ENTER();
  if (!CoversMappings(start, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (count > 1 && fake_cuda::Peers() == "refused")
    return CUDA_ERROR_NOT_SUPPORTED;
  auto& mappings = TheGpu().mappings;
  for (auto it = mappings.find(start);
       it != mappings.end() && it->first < start + bytes; ++it) {
    for (size_t i = 0; i < count; ++i)
      TheGpu().accessible[it->first].insert(access[i].location.id);
  }
  mprotect(At(start), bytes,
           access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ
               ? PROT_READ
               : PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* start, size_t bytes) {
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory memory;
  if (CUresult result = CreateMemory(bytes, &memory); result != CUDA_SUCCESS) {
    return result;
  }
  *start = MapAligned(memory.fd, bytes);
  TheGpu().allocations.emplace(*start, std::move(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr start) {
  FAKE_LOCK();
  const auto found = TheGpu().allocations.find(start);
  if (found == TheGpu().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(At(start), found->second.bytes);
  DropMemory(std::move(found->second));
  TheGpu().allocations.erase(found);
  return Enter(__func__);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr start) {
  FAKE_ENTER();
  const Memory& memory = TheGpu().allocations.at(start);
  const IpcName name = {getpid(), memory.fd.get(), memory.bytes};
  std::memset(handle, 0, sizeof(*handle));
  std::memcpy(handle, &name, sizeof(name));
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* start, CUipcMemHandle handle,
                            unsigned) {
  FAKE_ENTER();
  IpcName name;
  std::memcpy(&name, &handle, sizeof(name));
  if (name.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const UniqueFd fd = Reopen(absl::StrCat(name.pid), name.fd);
  if (!fd.valid()) return CUDA_ERROR_INVALID_CONTEXT;
  *start = MapAligned(fd, name.bytes);
  TheGpu().opened.emplace(*start, name.bytes);
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr start) {
  FAKE_LOCK();
  const auto found = TheGpu().opened.find(start);
  if (found == TheGpu().opened.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(At(start), found->second);
  TheGpu().opened.erase(found);
  return Enter(__func__);
}

}  // extern "C"
