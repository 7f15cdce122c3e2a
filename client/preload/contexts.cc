// `gmb run`: is the GPU quiet, and waiting until it is. cuCtxRecordEvent sees every stream of a context,
// also those that nobody knows of, and what a graph has launched on the device.
#include "client/preload/contexts.h"

#include <iterator>

#include "client/preload/primary_scope.h"

namespace gmb::preload {
namespace {

// The driver's errors about captures.
constexpr int kFirstOfCaptures = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
constexpr int kLastOfCaptures = kFirstOfCaptures + 9;

bool IsGone(CUresult of_context) {
  return of_context == CUDA_ERROR_INVALID_CONTEXT ||
         of_context == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// Whether the work of the context may go on. Any other error says that it is
// lost, as after a kernel that went astray, and nothing of it runs any more.
bool MayBeAtWork(CUresult of_context) {
  return of_context == CUDA_ERROR_NOT_INITIALIZED ||
         of_context == CUDA_ERROR_DEINITIALIZED ||
         of_context == CUDA_ERROR_OUT_OF_MEMORY ||
         (of_context >= kFirstOfCaptures && of_context <= kLastOfCaptures);
}

// Of the wait for one context. An error is the program's to know where the
// context is current, as the driver's free would say it, and where the wait was
// none.
CUresult ResultFor(CUresult of_context, bool is_current) {
  if (IsGone(of_context)) return CUDA_SUCCESS;
  return is_current || MayBeAtWork(of_context) ? of_context : CUDA_SUCCESS;
}

}  // namespace

void Contexts::Created(CUcontext context) {
  CUdevice device = 0;
  const bool known = driver_.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  const base::MutexLock lock(&mu_);
  events_.emplace(context, nullptr);
  if (known) created_[context] = {.device = device};
}

void Contexts::Attached(CUcontext context) {
  const base::MutexLock lock(&mu_);
  if (const auto made = created_.find(context); made != created_.end())
    ++made->second.uses;
}

bool Contexts::DetachesLast(CUcontext context) {
  const base::MutexLock lock(&mu_);
  const auto made = created_.find(context);
  if (made == created_.end() || made->second.uses == 1) return true;
  --made->second.uses;
  return false;
}

void Contexts::Ending(CUcontext context) {
  const base::MutexLock lock(&mu_);
  lost_ = true;
  created_.erase(context);
  std::erase_if(primaries_,
                [&](const auto& one) { return one.second == context; });
  // An event ends with its context; the driver crashes when it is asked for one
  // of a context that is gone.
  const auto found = events_.find(context);
  if (found == events_.end()) return;
  if (found->second != nullptr) driver_.cuEventDestroy_v2(found->second);
  events_.erase(found);
}

// Primary ones that live on are asked for again.
void Contexts::EndingPrimary(CUdevice device) {
  const base::MutexLock lock(&mu_);
  lost_ = true;
  primaries_.erase(device);
  for (auto event = events_.begin(); event != events_.end();) {
    event = created_.contains(event->first) ? std::next(event)
                                            : events_.erase(event);
  }
}

std::set<CUcontext> Contexts::CreatedOn(CUdevice device) {
  std::set<CUcontext> of_device;
  const base::MutexLock lock(&mu_);
  for (const auto& [context, made] : created_) {
    if (made.device == device) of_device.insert(context);
  }
  return of_device;
}

CUresult Contexts::SynchronizeIn(CUcontext context) const {
  CUresult result = driver_.cuCtxPushCurrent_v2(context);
  if (result != CUDA_SUCCESS) return result;
  result = driver_.cuCtxSynchronize();
  CUcontext popped = nullptr;
  driver_.cuCtxPopCurrent_v2(&popped);
  return result;
}

CUcontext Contexts::AskForPrimary(CUdevice device) {
  CUcontext primary = nullptr;
  if (!driver_.HasPrimaryContext(device) ||
      driver_.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  driver_.cuDevicePrimaryCtxRelease_v2(device);
  const base::MutexLock lock(&mu_);
  primaries_[device] = primary;
  return primary;
}

// The driver is asked only where another context is current than last time.
bool Contexts::IsPrimary(CUcontext context, CUdevice device) {
  if (context == nullptr) return false;
  {
    const base::MutexLock lock(&mu_);
    const auto known = primaries_.find(device);
    if (known != primaries_.end() && known->second == context) return true;
  }
  return AskForPrimary(device) == context;
}

HomeContext Contexts::HomeOn(CUdevice device) {
  CUcontext current = nullptr;
  if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr)
    return {};
  {
    const base::MutexLock lock(&mu_);
    if (created_.contains(current))
      return {.kind = HomeContext::Kind::kMade, .made = current};
  }
  if (!IsPrimary(current, device)) return {};
  return {.kind = HomeContext::Kind::kPrimary, .device = device};
}

CUcontext Contexts::HandleOf(const HomeContext& home) {
  if (home.kind == HomeContext::Kind::kMade) return home.made;
  if (home.kind != HomeContext::Kind::kPrimary) return nullptr;
  {
    const base::MutexLock lock(&mu_);
    const auto known = primaries_.find(home.device);
    if (known != primaries_.end()) return known->second;
  }
  return AskForPrimary(home.device);
}

CUresult Contexts::Synchronize(CUdevice device, const HomeContext& home) {
  CUcontext current = nullptr;
  driver_.cuCtxGetCurrent(&current);
  switch (home.kind) {
    case HomeContext::Kind::kEnded:
      return CUDA_SUCCESS;
    case HomeContext::Kind::kPrimary:
      return IsPrimary(current, device)
                 ? ResultFor(driver_.cuCtxSynchronize(), true)
                 : ResultFor(SynchronizePrimary(driver_, device), false);
    case HomeContext::Kind::kMade:
      if (CreatedOn(device).contains(home.made))
        return ResultFor(SynchronizeIn(home.made), home.made == current);
      break;  // whether it has ended is not known: the driver cannot be asked
    case HomeContext::Kind::kAny:
      break;
  }
  return SynchronizeAll(device, current);
}

CUresult Contexts::SynchronizeAll(CUdevice device, CUcontext current) {
  if (current != nullptr) {
    const CUresult result = driver_.cuCtxSynchronize();
    if (IsGone(result)) {
      current = nullptr;
    } else if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  for (CUcontext context : CreatedOn(device)) {
    if (context == current) continue;
    const CUresult result = SynchronizeIn(context);
    if (MayBeAtWork(result)) return result;
  }
  if (IsPrimary(current, device)) return CUDA_SUCCESS;
  return ResultFor(SynchronizePrimary(driver_, device), false);
}

// A primary context is made by whoever asks for it first, also by the driver's
// other callers.
bool Contexts::AddPrimaries() {
  int devices = 0;
  if (driver_.cuDeviceGetCount(&devices) != CUDA_SUCCESS) return false;
  for (int i = 0; i < devices; ++i) {
    CUdevice device = 0;
    if (driver_.cuDeviceGet(&device, i) != CUDA_SUCCESS) return false;
    unsigned flags = 0;
    int active = 0;
    // A context that faulted may not say: that is not to have none.
    if (driver_.cuDevicePrimaryCtxGetState(device, &flags, &active) !=
        CUDA_SUCCESS) {
      return false;
    }
    if (active == 0) continue;
    CUcontext primary = nullptr;
    if (driver_.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
      return false;
    driver_.cuDevicePrimaryCtxRelease_v2(device);
    events_.emplace(primary, nullptr);
  }
  return true;
}

bool Contexts::RecordIn(CUcontext context, CUevent* event) const {
  if (*event == nullptr) {
    if (driver_.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return false;
    const CUresult created =
        driver_.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent_v2(&popped);
    if (created != CUDA_SUCCESS) {
      *event = nullptr;
      return false;
    }
  }
  return driver_.cuCtxRecordEvent(context, *event) == CUDA_SUCCESS;
}

bool Contexts::Record() {
  const SynchronizingTurn turn(&captures_);
  if (!turn.granted()) return false;
  const base::MutexLock lock(&mu_);
  lost_ = false;
  if (!CanRecord() || !AddPrimaries()) return false;
  for (auto& [context, event] : events_) {
    if (!RecordIn(context, &event)) return false;
  }
  return true;
}

// Also to ask for an event is refused during a capture, and ends it.
Contexts::Work Contexts::Poll() {
  const SynchronizingTurn turn(&captures_);
  if (!turn.granted()) return Work::kLost;
  const base::MutexLock lock(&mu_);
  if (lost_) return Work::kLost;
  for (const auto& [context, event] : events_) {
    if (event == nullptr) continue;  // made since: its work has moved a count
    const CUresult result = driver_.cuEventQuery(event);
    if (result == CUDA_ERROR_NOT_READY) return Work::kBusy;
    if (result != CUDA_SUCCESS) return Work::kLost;
  }
  return Work::kDone;
}

}  // namespace gmb::preload
