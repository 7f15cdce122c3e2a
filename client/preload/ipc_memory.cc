// `gmb run`: memory that other processes of the tenant have, and ours that they
// map.
#include "client/preload/ipc_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "client/preload/process_life.h"

namespace gmb::preload {

using base::MutexLock;

namespace {

CUmemAccessDesc AccessFrom(CUdevice device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

// Whether the allocation lies in its lease, as one who tells the truth says.
bool Fits(const SharedBlock& block, uint64_t lease_bytes) {
  return block.bytes > 0 && block.offset <= lease_bytes &&
         block.bytes <= lease_bytes - block.offset;
}

}  // namespace

Answer IpcMemory::GetHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  SharedBlock block{};
  const Answer answer = memory_.exports().Share(address, &block);
  if (answer != CUDA_SUCCESS) return answer;
  *handle = HandleOf(block);
  return CUDA_SUCCESS;
}

std::optional<CUdevice> IpcMemory::DeviceOf(const CUuuid& uuid) const {
  int count = 0;
  driver_.cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid its{};
    if (driver_.cuDeviceGet(&device, i) == CUDA_SUCCESS &&
        driver_.cuDeviceGetUuid_v2(&its, device) == CUDA_SUCCESS &&
        std::memcmp(&its, &uuid, sizeof(uuid)) == 0) {
      return device;
    }
  }
  return std::nullopt;
}

Answer IpcMemory::Import(CUmemGenericAllocationHandle* handle, int descriptor) {
  const std::optional<SharedBlock> block = BlockOf(descriptor);
  if (!block.has_value()) return std::nullopt;
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  const std::optional<CUdevice> device = DeviceOf(block->device);
  if (!device.has_value()) return CUDA_ERROR_INVALID_DEVICE;
  return mapper_.Open(block->lease, *device, handle);
}

Answer IpcMemory::Open(CUdeviceptr* address, const CUipcMemHandle& handle,
                       unsigned flags) {
  const std::optional<SharedBlock> block = BlockOf(handle);
  if (!block.has_value()) return std::nullopt;
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  if ((flags & ~static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  CUdevice user = 0;
  if (const CUresult result = driver_.cuCtxGetDevice(&user);
      result != CUDA_SUCCESS) {
    return result;
  }
  // The driver, too, opens no handle of its own process.
  if (memory_.exports().Has(block->lease)) return CUDA_ERROR_INVALID_CONTEXT;
  const LeaseName lease = NameOf(block->lease);
  const MutexLock opening(&opening_);
  DetachOver();
  Attached attached;
  {
    const MutexLock lock(&mu_);
    for (const auto* const leases : {&attached_, &over_}) {
      if (const auto known = leases->find(lease); known != leases->end())
        attached = known->second;
    }
  }
  const bool is_new = attached.handle == 0;
  CUresult result =
      is_new ? Attach(*block, user, &attached) : MapAttached(user, &attached);
  if (result != CUDA_SUCCESS) return result;
  if (!Fits(*block, attached.bytes)) {
    if (is_new) Detach(attached);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ++attached.opened;
  *address = attached.start + block->offset;
  const MutexLock lock(&mu_);
  attached_[lease] = attached;
  over_.erase(lease);
  Opened& opened = opened_[*address];
  opened = {.lease = lease,
            .bytes = std::max(block->bytes, opened.bytes),
            .count = opened.count + 1};
  return CUDA_SUCCESS;
}

CUresult IpcMemory::Attach(const SharedBlock& block, CUdevice user,
                           Attached* attached) {
  const std::optional<CUdevice> device = DeviceOf(block.device);
  if (!device.has_value()) return CUDA_ERROR_INVALID_DEVICE;
  attached->device = *device;
  CUresult result =
      mapper_.Attach(block.lease, *device, &attached->handle, &attached->bytes);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr start = 0;
  result = GMB_REAL_CALL(driver_, cuMemAddressReserve, &start, attached->bytes,
                         0, 0, 0);
  if (result == CUDA_SUCCESS) {
    attached->start = start;
    result = *mapper_.Map(start, attached->bytes, 0, attached->handle, 0);
  }
  if (result == CUDA_SUCCESS) result = MapAttached(user, attached);
  if (result != CUDA_SUCCESS) Detach(*attached);
  return result;
}

// The device of the memory itself, too: the program may name it in a copy.
CUresult IpcMemory::MapAttached(CUdevice user, Attached* attached) {
  std::vector<CUmemAccessDesc> access;
  for (const CUdevice device : std::set<CUdevice>{attached->device, user}) {
    if (!attached->users.contains(device)) access.push_back(AccessFrom(device));
  }
  if (access.empty()) return CUDA_SUCCESS;
  const Answer set = mapper_.SetAccess(attached->start, attached->bytes,
                                       access.data(), access.size());
  if (set != CUDA_SUCCESS) return set.value_or(CUDA_ERROR_MAP_FAILED);
  attached->users.insert({attached->device, user});
  return CUDA_SUCCESS;
}

void IpcMemory::Detach(const Attached& attached) {
  // Nothing is mapped there: nothing is unmapped.
  if (attached.start != 0)
    static_cast<void>(mapper_.Unmap(attached.start, attached.bytes));
  static_cast<void>(mapper_.Release(attached.handle));
  if (attached.start != 0) {
    GMB_REAL_CALL(driver_, cuMemAddressFree, attached.start, attached.bytes);
  }
}

bool IpcMemory::Await(const std::set<CUdevice>& devices) const {
  return std::all_of(devices.begin(), devices.end(), [this](CUdevice device) {
    return memory_.contexts().Synchronize(device) == CUDA_SUCCESS;
  });
}

// After all work that was submitted, as with memory that is freed; not during a
// capture, which that would destroy.
void IpcMemory::DetachOver() {
  {
    const MutexLock lock(&mu_);
    if (over_.empty()) return;
  }
  const SynchronizingTurn turn(&memory_.captures());
  if (!turn.granted()) return;
  std::map<LeaseName, Attached> over;
  {
    const MutexLock lock(&mu_);
    over = std::exchange(over_, {});
  }
  for (const auto& [lease, attached] : over) {
    if (Await(attached.users)) {
      Detach(attached);
    } else {
      const MutexLock lock(&mu_);
      over_.emplace(lease, attached);
    }
  }
}

// Nobody who has nothing to unmap waits for who opens something.
void IpcMemory::Sweep() {
  {
    const MutexLock lock(&mu_);
    if (over_.empty()) return;
  }
  if (Exiting()) return;
  const MutexLock opening(&opening_);
  DetachOver();
}

Answer IpcMemory::Close(CUdeviceptr address) {
  const MutexLock opening(&opening_);
  {
    const MutexLock lock(&mu_);
    const auto opened = opened_.find(address);
    if (opened == opened_.end()) return std::nullopt;
    if (Exiting()) return CUDA_SUCCESS;
    const auto attached = attached_.find(opened->second.lease);
    if (--opened->second.count == 0) opened_.erase(opened);
    if (--attached->second.opened > 0) return CUDA_SUCCESS;
    over_.insert(attached_.extract(attached));
  }
  DetachOver();
  return CUDA_SUCCESS;
}

bool IpcMemory::GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                size_t* bytes) {
  const MutexLock lock(&mu_);
  const auto behind = opened_.upper_bound(address);
  if (behind == opened_.begin()) return false;
  const auto& [at, opened] = *std::prev(behind);
  if (address - at >= opened.bytes) return false;
  if (start != nullptr) *start = at;
  if (bytes != nullptr) *bytes = opened.bytes;
  return true;
}

}  // namespace gmb::preload
