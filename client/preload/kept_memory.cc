// `gmb run`: keeps what was freed a moment ago, and gives it back.
#include "client/preload/kept_memory.h"

#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "client/preload/process_life.h"

namespace gmb::preload {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks of the thread. Programs that free and allocate in a loop
// are not heard of.
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kExitPatience = std::chrono::milliseconds(500);

KeptMemory* of_this_process = nullptr;

// Signals are for the program's own threads. False: there is no room for one
// more.
bool StartQuietThread(const std::function<void()>& body) {
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(body).detach();
  } catch (const std::exception&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

KeptMemory::KeptMemory(Captures* captures, Hooks hooks)
    : captures_(*captures), hooks_(std::move(hooks)) {}

void KeptMemory::Keep(CUdevice device, const std::string& uuid,
                      const LeaseRange& lease) {
  // Without the thread nobody would give it back.
  if (!ThreadRuns()) return hooks_.release(lease);
  const base::MutexLock lock(&mu_);
  kept_.Add(device, lease, Clock::now());
  uuids_.emplace(device, uuid);
  changed_.NotifyAll();
}

bool KeptMemory::ThreadRuns() {
  const base::MutexLock lock(&starting_);
  if (thread_runs_) return true;
  if (std::exchange(of_this_process, this) == nullptr) {
    // After the client library was loaded: its destructors run later than this.
    static_cast<void>(std::atexit([] {
      if (!InForkedChild()) of_this_process->Stop();
    }));
  }
  thread_runs_ = StartQuietThread([this] { Run(); });
  return thread_runs_;
}

std::optional<LeaseRange> KeptMemory::Take(CUdevice device, uint64_t bytes) {
  std::optional<LeaseRange> lease;
  {
    const base::MutexLock lock(&mu_);
    lease = kept_.Take(device, bytes);
  }
  return IfItServes(lease);
}

std::optional<LeaseRange> KeptMemory::TakeUnmapped(CUdevice device,
                                                   uint64_t bytes) {
  std::optional<LeaseRange> lease;
  {
    const base::MutexLock lock(&mu_);
    lease = kept_.TakeUnmapped(device, bytes);
  }
  return IfItServes(lease);
}

size_t KeptMemory::CountUnmapped(CUdevice device, uint64_t bytes) {
  const base::MutexLock lock(&mu_);
  return kept_.CountUnmapped(device, bytes);
}

std::optional<LeaseRange> KeptMemory::IfItServes(
    std::optional<LeaseRange> lease) {
  if (!lease.has_value() || hooks_.serves(*lease)) return lease;
  hooks_.release(*lease);
  return std::nullopt;
}

uint64_t KeptMemory::HeldBytes(CUdevice device) {
  const base::MutexLock lock(&mu_);
  return kept_.HeldBytes(device);
}

bool KeptMemory::ReleaseAll() {
  std::vector<LeaseRange> all;
  {
    const base::MutexLock lock(&mu_);
    all = kept_.TakeAll();
  }
  Release(all);
  return !all.empty();
}

void KeptMemory::Trim(const std::string& uuid, uint64_t bytes) {
  std::optional<CUdevice> named;
  {
    const base::MutexLock lock(&mu_);
    for (const auto& [device, of_device] : uuids_) {
      if (of_device == uuid) named = device;
    }
  }
  if (named.has_value()) MakeRoom(*named, bytes);
  Tell();
}

void KeptMemory::ReleaseAsked(CUdevice device) {
  std::vector<LeaseRange> asked;
  {
    const base::MutexLock lock(&mu_);
    asked = kept_.TakeAsked(device);
  }
  Release(asked);
}

void KeptMemory::MakeRoom(CUdevice device, uint64_t bytes) {
  ReleaseAsked(device);
  if (HeldBytes(device) == 0) return;
  const SynchronizingTurn turn(&captures_);
  if (!turn.granted()) return;
  std::vector<LeaseRange> leases;
  {
    const base::MutexLock lock(&mu_);
    leases = kept_.TakeFor(device, bytes);
  }
  Release(leases);
}

void KeptMemory::Stop() {
  const base::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
  const auto deadline = Clock::now() + kExitPatience;
  while (releasing_ && changed_.WaitUntil(&mu_, deadline)) {
  }
}

void KeptMemory::Release(const std::vector<LeaseRange>& leases) {
  for (const LeaseRange& lease : leases) hooks_.release(lease);
}

void KeptMemory::Run() {
  for (;;) {
    {
      const base::MutexLock lock(&mu_);
      while (kept_.empty() && !stopped_) changed_.Wait(&mu_);
      const auto due = Clock::now() + kPause;
      while (!stopped_ && changed_.WaitUntil(&mu_, due)) {
      }
      if (stopped_) return;
      releasing_ = true;
    }
    ReleaseOld();
    Tell();
    const base::MutexLock lock(&mu_);
    releasing_ = false;
    changed_.NotifyAll();
  }
}

// A release that a capture holds up is tried again after the next pause.
void KeptMemory::ReleaseOld() {
  std::vector<LeaseRange> asked;
  {
    const base::MutexLock lock(&mu_);
    asked = kept_.TakeOldAsked(Clock::now());
  }
  Release(asked);
  const SynchronizingTurn turn(&captures_);
  if (!turn.granted()) return;
  std::vector<LeaseRange> old;
  {
    const base::MutexLock lock(&mu_);
    old = kept_.TakeOld(Clock::now());
  }
  Release(old);
}

// A number that is out of date is mended after the next pause.
void KeptMemory::Tell() {
  std::map<std::string, uint64_t> news;
  {
    const base::MutexLock lock(&mu_);
    for (const auto& [device, uuid] : uuids_) {
      const uint64_t held = kept_.HeldBytes(device);
      if (std::exchange(told_[device], held) != held) news[uuid] = held;
    }
  }
  for (const auto& [uuid, bytes] : news) hooks_.tell(uuid, bytes);
}

}  // namespace gmb::preload
