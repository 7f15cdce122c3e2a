// `gmb run`: handles of cuMemCreate come, from leases that were kept or asked for
// ahead or from the broker, and go.
#include <chrono>
#include <string>

#include "client/preload/process_life.h"
#include "client/preload/program_gate.h"
#include "client/preload/settings.h"
#include "client/preload/virtual_hooks.h"
#include "client/preload/virtual_memory.h"
#include "client/preload/wait_left.h"

namespace gmb::preload {

using base::MutexLock;

Answer VirtualMemory::Create(CUmemGenericAllocationHandle* handle,
                             uint64_t bytes,
                             const CUmemAllocationProp& properties) {
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  if (bytes > Memory::kLargestBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUdevice device = properties.location.id;
  memory_.sweeper().Sweep();
  size_t ahead = 0;
  {
    const MutexLock lock(&mu_);
    ahead = run_.Next(device, bytes, std::chrono::steady_clock::now());
  }
  // One more for this one, unless there is one.
  const size_t there = memory_.kept().CountUnmapped(device, bytes);
  if (ahead > 0 && there <= ahead / 2)
    AskAhead(device, bytes, ahead + 1 - there);
  const WaitLeft left(TheSettings().wait_ms, WaitLeft::Clock::now());
  if (TakeKept(handle, bytes, properties, left)) return CUDA_SUCCESS;
  memory_.kept().MakeRoom(device, bytes);
  const Answer answer = CreateOnce(handle, bytes, properties, left, nullptr);
  if (answer != CUDA_ERROR_OUT_OF_MEMORY || !memory_.sweeper().ReleaseKept())
    return answer;
  return CreateOnce(handle, bytes, properties, left, nullptr);
}

bool VirtualMemory::TakeKept(CUmemGenericAllocationHandle* handle,
                             uint64_t bytes,
                             const CUmemAllocationProp& properties,
                             const WaitLeft& left) {
  const CUdevice device = properties.location.id;
  while (const std::optional<LeaseRange> kept =
             memory_.kept().TakeUnmapped(device, bytes)) {
    if (kept->asked == 0) {
      const MutexLock lock(&mu_);
      book_.UseAgain(kept->name, properties);
      *handle = kept->name;
      return true;
    }
    if (CreateOnce(handle, bytes, properties, left, &*kept) == CUDA_SUCCESS)
      return true;
    const MutexLock lock(&mu_);
    run_.Refused(std::chrono::steady_clock::now());
  }
  return false;
}

void VirtualMemory::AskAhead(CUdevice device, uint64_t bytes, size_t count) {
  const std::string& uuid = memory_.names().UuidOf(device);
  for (const LeaseRange& asked :
       memory_.broker().AskAhead(uuid, bytes, count)) {
    memory_.kept().Keep(device, uuid, asked);
  }
}

Answer VirtualMemory::CreateOnce(CUmemGenericAllocationHandle* handle,
                                 uint64_t bytes,
                                 const CUmemAllocationProp& properties,
                                 const WaitLeft& left,
                                 const LeaseRange* asked) {
  CUmemGenericAllocationHandle name = 0;
  {
    // Before it is asked for: its slabs come while the grant is on its way.
    const MutexLock lock(&mu_);
    name = book_.Add(bytes, properties);
  }
  LeaseRange lease;
  const Outcome outcome = memory_.broker().AcquireUnmapped(
      memory_.names().UuidOf(properties.location.id), bytes,
      left.MillisecondsAt(WaitLeft::Clock::now()), HooksOf(name), asked,
      &lease);
  const MutexLock lock(&mu_);
  if (outcome != Outcome::kDone) {
    book_.Drop(name);
    return AnswerOf(outcome);
  }
  lease.name = name;
  book_.Find(name)->lease = lease;
  *handle = name;
  return CUDA_SUCCESS;
}

Answer VirtualMemory::Release(CUmemGenericAllocationHandle handle) {
  if (!VirtualHandles::IsOurs(handle)) return std::nullopt;
  std::optional<LeaseRange> unused;
  CUdevice device = 0;
  {
    const MutexLock order(&order_);
    const MutexLock lock(&mu_);
    VirtualHandle* const found = book_.FindReferenced(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (Exiting()) return CUDA_SUCCESS;
    --found->references;
    device = found->properties.location.id;
    unused = book_.LeaseIfUnused(handle);
  }
  if (unused.has_value()) Keep(*unused, device);
  return CUDA_SUCCESS;
}

void VirtualMemory::Keep(const LeaseRange& unused, CUdevice device) {
  if (unused.shared || ProgramGate::IsAway()) return GoBack(unused);
  memory_.kept().Keep(device, memory_.names().UuidOf(device), unused);
}

void VirtualMemory::GoBack(const LeaseRange& kept) {
  std::optional<VirtualHandle> unused;
  {
    const MutexLock order(&order_);
    const MutexLock lock(&mu_);
    unused = book_.TakeUnused(kept.name);
  }
  if (unused.has_value()) slabs_.LetGo(unused->slabs);
  BrokerLink::ReleaseSoon(kept);
}

}  // namespace gmb::preload
