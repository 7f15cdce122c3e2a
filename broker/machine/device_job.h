#ifndef GMB_BROKER_MACHINE_DEVICE_JOB_H_
#define GMB_BROKER_MACHINE_DEVICE_JOB_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/slab.h"
#include "broker/machine/slab_pool.h"
#include "quota/units.h"

namespace gmb::broker {

// The last holder of a destroyed slab; nullopt: no tenant ever held it.
using LastHolder = std::optional<quota::TenantId>;

// Of the unreturned bytes: those that come back only when an operator steps in.
struct StuckBytes {
  uint64_t bytes = 0;
  std::string why;  // of one of the slabs, and what to do: device::HeldSlab
};

// A process that uses the device, the broker's own left out.
struct DeviceUser {
  pid_t pid = 0;
  uint64_t used_bytes = 0;
  std::string program;  // as device::ProcessUsage has it
};

// The device after a step, as far as the broker can see it.
struct DeviceReading {
  std::map<quota::TenantId, uint64_t> unreturned;  // of deleted tenants too
  std::map<LastHolder, StuckBytes> stuck;
  uint64_t outside_bytes = 0;
  uint64_t unreturned_outside_bytes = 0;  // see FreeAudit
  uint64_t risen_bytes = 0;               // likewise
  uint64_t free_bytes = 0;
  uint64_t baseline_bytes = 0;
  // Of the last audit, as far as the driver names them; at most the
  // kMostDeviceUsers that use most. Never a ground for a decision.
  std::vector<DeviceUser> users;
  // The keeper does not answer: what is destroyed does not come back.
  bool destroyed_is_kept = false;
};
inline constexpr size_t kMostDeviceUsers = 64;

// Make slabs of what others leave: each is created and kept as soon as enough
// has been destroyed for it, so that nobody outside finds more free than one
// slab. Where a create fails, the slabs not yet destroyed are spared; and
// ready ones while what is destroyed does not come back.
struct HandOver {
  std::vector<Condemned> destroy;
  std::vector<uint64_t> create_bytes;
};
// A lease's missing slabs.
struct PrepareJob {
  quota::LeaseId lease;
  HandOver slabs;
};
// Ready slabs and float.
struct RefillJob {
  HandOver slabs;
};
struct DestroyJob {
  std::vector<Condemned> slabs;
};
// Only looks: the free figure, and who holds memory.
struct AuditJob {
  std::vector<pid_t> clients;  // processes whose memory may be unreturned slabs
  uint64_t raise_baseline_by = 0;  // see FreeAudit
  // Tenants' debts to the last broker.
  std::map<quota::TenantId, uint64_t> inherited = {};
};
using DeviceJob = std::variant<PrepareJob, RefillJob, DestroyJob, AuditJob>;

// The end of a job. `created` holds every slab made and kept, also when
// the status is an error; what is short of the request was not made.
struct DeviceResult {
  DeviceJob job;
  absl::Status status;
  std::vector<Slab> created;
  std::vector<Condemned> spared;
  uint64_t destroyed_bytes = 0;
  DeviceReading reading;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_DEVICE_JOB_H_
