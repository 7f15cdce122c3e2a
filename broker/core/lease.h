#ifndef GMB_BROKER_CORE_LEASE_H_
#define GMB_BROKER_CORE_LEASE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/slab.h"
#include "gmb/v1/admin.pb.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// An Acquire that is not answered yet.
struct PendingAcquire {
  quota::RequestId id;  // the engine's name for it
  uint64_t session = 0;
  uint64_t client_id = 0;  // the client's request id
  quota::PoolId pool;
  uint64_t bytes = 0;
  v1::Contents contents = v1::PRESERVE;
  quota::Instant asked;
  quota::Instant deadline;
  uint32_t attempts = 0;  // grants whose slabs could not be created
  bool told_waiting = false;
};

struct Lease {
  quota::LeaseId id;
  PendingAcquire request;
  quota::TenantId tenant;
  uint64_t bytes = 0;
  std::vector<Slab> slabs;  // in address order once all are there
  v1::LeaseInfo::State state = v1::LeaseInfo::CREATING;
  absl::Time since;
  // A ready slab was destroyed to make room for what could not be created.
  bool gave_up_ready = false;
  // Its session ended while the device was still creating; it ends with that.
  bool doomed = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_LEASE_H_
