#ifndef GMB_BROKER_CORE_DEVICE_WORKER_H_
#define GMB_BROKER_CORE_DEVICE_WORKER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "broker/core/device_tasks.h"
#include "broker/core/keeper.h"
#include "broker/machine/device_job.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"
#include "device/allocator.h"
#include "device/hostpool/host_pool.h"

namespace gmb::broker {

// The one thread that calls a device's allocator: takes jobs first in, first
// out, answers each through `done` (called on this thread, with no lock held).
// Push is cheap and may be called under the core's lock; Wake after it.
class DeviceWorker {
 public:
  using Done = std::function<void(DeviceResult)>;

  // See DeviceTasks::Create.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<DeviceWorker>> Create(
      std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
      std::atomic<SlabId>* slab_ids, absl::Span<const SlabRecord> kept = {},
      uint64_t known_baseline = 0);
  // Finishes the job in hand, drops the rest, and destroys every slab alive,
  // unless they are to be left alone.
  ~DeviceWorker();

  // See DeviceTasks. Before Start.
  void SetHostPool(const device::HostPool* pool) { tasks_->SetHostPool(pool); }
  void Start(Done done);
  // Ends the thread after the job in hand; jobs still waiting, or pushed from
  // then on, are not done.
  void Stop();
  void Push(DeviceJob job);
  void Wake();

  [[nodiscard]] const device::DeviceInfo& info() const {
    return tasks_->info();
  }
  [[nodiscard]] uint64_t baseline_bytes() const {
    return tasks_->baseline_bytes();
  }
  // See DeviceTasks.
  [[nodiscard]] const absl::flat_hash_map<SlabId, Slab>& imported() const {
    return tasks_->imported();
  }
  [[nodiscard]] const absl::flat_hash_map<SlabId, absl::Status>& import_errors()
      const {
    return tasks_->import_errors();
  }
  void LeaveAlone() { tasks_->LeaveAlone(); }

 private:
  explicit DeviceWorker(std::unique_ptr<DeviceTasks> tasks)
      : tasks_(std::move(tasks)) {}

  void Run();

  const std::unique_ptr<DeviceTasks> tasks_;  // by the worker's thread only
  Done done_;

  base::Mutex mu_;
  base::CondVar wake_;
  std::deque<DeviceJob> jobs_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_DEVICE_WORKER_H_
