#ifndef GMB_BROKER_CORE_DEVICE_TASKS_H_
#define GMB_BROKER_CORE_DEVICE_TASKS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "broker/core/free_audit.h"
#include "broker/core/keeper.h"
#include "broker/machine/device_job.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"
#include "device/allocator.h"
#include "device/hostpool/host_pool.h"

namespace gmb::broker {

// Does a device's jobs, one after the other: creates slabs, keeps their
// handles, destroys them, and reads who holds what.
//
// Used by one thread at a time; a job may take milliseconds.
class DeviceTasks {
 public:
  // `slab_ids` gives names that are unique in the broker. It and `keeper`
  // outlive this. `kept`: slabs of the last broker, which are imported by what
  // the keeper has of them; no slab made here is named as one of them. The
  // baseline is what would be free without those, or the known one if that is
  // more: clients have contexts there by now.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<DeviceTasks>> Create(
      std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
      std::atomic<SlabId>* slab_ids, absl::Span<const SlabRecord> kept = {},
      uint64_t known_baseline = 0);
  // Destroys every slab alive, unless they are to be left alone.
  ~DeviceTasks();
  DeviceTasks(const DeviceTasks&) = delete;
  DeviceTasks& operator=(const DeviceTasks&) = delete;

  // A GPU's: to page-lock it takes some of the device's memory, which is no
  // tenant's debt. Before the first job; outlives this.
  void SetHostPool(const device::HostPool* pool) { host_pool_ = pool; }

  [[nodiscard]] DeviceResult Do(DeviceJob job);

  [[nodiscard]] const device::DeviceInfo& info() const {
    return allocator_->info();
  }
  [[nodiscard]] uint64_t baseline_bytes() const { return baseline_; }

  // The kept slabs that are alive here since Create, and why the others are
  // not. Of the latter the keeper still has what it had.
  [[nodiscard]] const absl::flat_hash_map<SlabId, Slab>& imported() const {
    return imports_.slabs;
  }
  [[nodiscard]] const absl::flat_hash_map<SlabId, absl::Status>& import_errors()
      const {
    return imports_.errors;
  }

  // The process is going, and the next one takes its slabs over: the end of
  // this destroys none of them. From any thread.
  void LeaveAlone() { leave_alone_ = true; }

 private:
  struct Imports {
    absl::flat_hash_map<SlabId, Slab> slabs;
    absl::flat_hash_map<SlabId, absl::Status> errors;
    uint64_t bytes = 0;
  };
  static Imports Import(device::Allocator* allocator, const Keeper& keeper,
                        absl::Span<const SlabRecord> kept);

  DeviceTasks(std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
              std::atomic<SlabId>* slab_ids, uint64_t baseline,
              Imports imports);

  void Work(const HandOver& slabs, DeviceResult* result);
  absl::Status CreateAndKeep(uint64_t bytes, std::vector<Slab>* created);
  void Destroy(const Slab& slab, LastHolder holder, DeviceResult* result);
  void Look();
  void Audit(const AuditJob& job);
  void ListUsers(absl::Span<const device::ProcessUsage> processes);
  uint64_t ReadFree();
  [[nodiscard]] uint64_t OwnBytesSince(uint64_t locked_bytes) const;

  const std::unique_ptr<device::Allocator> allocator_;
  Keeper* const keeper_;
  std::atomic<SlabId>* const slab_ids_;
  const uint64_t baseline_;
  const Imports imports_;
  std::atomic<bool> leave_alone_ = false;
  const device::HostPool* host_pool_ = nullptr;
  FreeAudit audit_;
  absl::Status lost_;  // what the free figure said of a device that is
  std::map<pid_t, uint64_t> users_before_;  // of the device, at the baseline
  std::vector<DeviceUser> users_;           // at the last audit
  std::map<SlabId, Slab> alive_;
  // Destroyed slabs that are not known to be back, and those that are stuck.
  std::map<device::SlabKey, LastHolder> last_holders_;
  std::map<LastHolder, StuckBytes> stuck_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_DEVICE_TASKS_H_
