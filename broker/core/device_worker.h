#ifndef GMB_BROKER_CORE_DEVICE_WORKER_H_
#define GMB_BROKER_CORE_DEVICE_WORKER_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/free_audit.h"
#include "broker/core/keeper.h"
#include "broker/machine/device_job.h"
#include "broker/machine/slab.h"
#include "device/allocator.h"
#include "ipc/mutex.h"

namespace gmb::broker {

// The one thread that calls a device's allocator: takes jobs first in, first
// out, answers each through `done` (called on this thread, with no lock held).
// Push is cheap and may be called under the core's lock; Wake after it.
class DeviceWorker {
 public:
  using Done = std::function<void(DeviceResult)>;

  // Reads the device's free figure as the baseline; `slab_ids` gives names
  // that are unique in the broker, `keeper` must outlive the worker.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<DeviceWorker>> Create(
      std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
      std::atomic<SlabId>* slab_ids);
  // Finishes the job in hand, drops the rest, destroys every slab alive.
  ~DeviceWorker();

  void Start(Done done);
  // Ends the thread after the job in hand; jobs still waiting, or pushed from
  // then on, are not done.
  void Stop();
  void Push(DeviceJob job);
  void Wake();

  [[nodiscard]] const device::DeviceInfo& info() const {
    return allocator_->info();
  }
  [[nodiscard]] uint64_t baseline_bytes() const { return baseline_; }

 private:
  DeviceWorker(std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
               std::atomic<SlabId>* slab_ids, uint64_t baseline);

  void Run();
  void Do(DeviceResult* result);
  void Work(const HandOver& slabs, DeviceResult* result);
  absl::Status CreateAndKeep(uint64_t bytes, std::vector<Slab>* created);
  void Destroy(const Slab& slab, LastHolder holder, DeviceResult* result);
  void Look();
  void Audit(const AuditJob& job);
  uint64_t ReadFree();

  const std::unique_ptr<device::Allocator> allocator_;
  Keeper* const keeper_;
  std::atomic<SlabId>* const slab_ids_;
  const uint64_t baseline_;
  Done done_;

  // Used by the worker's thread only.
  FreeAudit audit_;
  std::map<pid_t, uint64_t> users_before_;  // of the device, at the baseline
  std::map<SlabId, Slab> alive_;
  // Destroyed slabs that are not known to be back, and those that are stuck.
  std::map<device::SlabKey, LastHolder> last_holders_;
  std::map<LastHolder, StuckBytes> stuck_;

  ipc::Mutex mu_;
  ipc::CondVar wake_;
  std::deque<DeviceJob> jobs_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_DEVICE_WORKER_H_
