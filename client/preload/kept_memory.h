#ifndef GMB_CLIENT_PRELOAD_KEPT_MEMORY_H_
#define GMB_CLIENT_PRELOAD_KEPT_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/broker_link.h"
#include "client/preload/captures.h"
#include "client/preload/kept_leases.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// KeptLeases of the process, with a thread that gives back what nobody asked
// for. The broker is told of memory that is kept longer than a moment, and asks
// for it before it takes anything else. Lives as long as the process.
// Thread-safe; no lock is held while the broker or the driver is asked.
class KeptMemory {
 public:
  struct Hooks {
    // Gives a lease back, without a wait for its device; but for one that was
    // only asked for it waits for the broker.
    std::function<void(const LeaseRange&)> release;
    // Whether it may serve again: its session goes on, and it is not away.
    std::function<bool(const LeaseRange&)> serves;
    // Tells the broker how much of a device is kept. Does not wait.
    std::function<void(const std::string& uuid, uint64_t bytes)> tell;
  };
  KeptMemory(Captures* captures, Hooks hooks);
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // No work may be left on it, in any context: it is unmapped later without a
  // wait for the device. `uuid` is the device's, as the broker writes it. Where
  // no thread can be started it goes back at once.
  void Keep(CUdevice device, const std::string& uuid, const LeaseRange& lease);
  // A lease of exactly so many bytes that may serve again, and that is mapped; or
  // that its holder maps.
  [[nodiscard]] std::optional<LeaseRange> Take(CUdevice device, uint64_t bytes);
  [[nodiscard]] std::optional<LeaseRange> TakeUnmapped(CUdevice device,
                                                       uint64_t bytes);
  [[nodiscard]] size_t CountUnmapped(CUdevice device, uint64_t bytes);
  // Of the device; the program does not have them.
  [[nodiscard]] uint64_t HeldBytes(CUdevice device);

  // The caller has its SynchronizingTurn. False: there was nothing.
  bool ReleaseAll();
  // Gives back as much, or all of the device, with a turn of its own: to others
  // who need it, or before the program asks for as much in another size, so that
  // nothing is refused because of what is kept. Whether the device is at work
  // does not matter. It stays while there is a capture.
  void Trim(const std::string& uuid, uint64_t bytes);
  void MakeRoom(CUdevice device, uint64_t bytes);
  // Gives back what was only asked for, of which it is not known whether it
  // comes.
  void ReleaseAsked(CUdevice device);
  // The process exits: the thread touches nothing from now on. Waits for it,
  // but not for long.
  void Stop();

 private:
  [[nodiscard]] std::optional<LeaseRange> IfItServes(
      std::optional<LeaseRange> lease);
  // Starts it at first. False: there is no room for a thread.
  [[nodiscard]] bool ThreadRuns();
  void Run();
  void ReleaseOld();
  void Release(const std::vector<LeaseRange>& leases);
  void Tell();

  Captures& captures_;
  const Hooks hooks_;

  base::Mutex starting_;
  bool thread_runs_ ABSL_GUARDED_BY(starting_) = false;
  base::Mutex mu_;
  base::CondVar changed_;
  KeptLeases kept_ ABSL_GUARDED_BY(mu_);
  bool releasing_ ABSL_GUARDED_BY(mu_) = false;  // the thread
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // The devices that had some, and how much of it the broker was told.
  std::map<CUdevice, std::string> uuids_ ABSL_GUARDED_BY(mu_);
  std::map<CUdevice, uint64_t> told_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_KEPT_MEMORY_H_
