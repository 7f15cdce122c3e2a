#ifndef GMB_BROKER_MACHINE_EFFECT_H_
#define GMB_BROKER_MACHINE_EFFECT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "broker/machine/device_job.h"
#include "broker/machine/slab.h"
#include "device/copy_job.h"
#include "device/hostpool/host_extent.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

// Decisions of the machine that others carry out. Sessions, pools and slabs are
// named by their ids: the one that carries an effect out has the sockets, the
// workers and the handles.
namespace gmb::broker {

// A message on the session's stream.
struct Say {
  uint64_t session = 0;
  v1::BrokerMessage message;
};

// One packet of a lease's slabs on the session's handle socket. The handles of
// `slabs` are added by who sends it.
struct SendSlabs {
  uint64_t session = 0;
  v1::Slabs packet;
  std::vector<SlabId> slabs;
};

// So many of the session's leases may have to move at once.
struct ExpectMoves {
  uint64_t session = 0;
  size_t leases = 0;
};

// The session has ended: its stream and its handle socket are closed.
struct HangUp {
  uint64_t session = 0;
  absl::Status status;
};

// Work for the pool's device, first in, first out.
struct Give {
  quota::PoolId pool;
  DeviceJob job;
};

// One slab's bytes, to its room in the host pool or back. Each is answered by
// Machine::Copied.
struct CopySlab {
  quota::PoolId pool;
  quota::LeaseId lease;
  SlabId slab = 0;
  device::CopyDirection direction = device::CopyDirection::kOut;
  uint64_t group = 0;
  uint64_t slab_bytes = 0;
  std::vector<device::HostExtent> room;
};

// Copies of that group that are not done end as CANCELLED.
struct CancelCopies {
  quota::PoolId pool;
  uint64_t group = 0;
};

// SIGKILL to the session's process. Answered by DebtDesk::OnKilled.
struct Kill {
  uint64_t session = 0;
  std::shared_ptr<const base::UniqueFd> process;
  v1::Event event;  // once it is killed
};

// An operator's call that waited gets its answer.
struct Reply {
  std::function<void()> call;
};

struct Publish {
  v1::Event event;
};

using Effect = std::variant<Say, SendSlabs, ExpectMoves, HangUp, Give, CopySlab,
                            CancelCopies, Kill, Reply, Publish>;

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_EFFECT_H_
